"""Tokens a second: gptviz's generation with full records beside Hugging Face's `generate`, same model and settings.

The two take turns, in alternating order, and the medians are compared. A run counts all tokens it made and all its
time, the prompt's forward pass included; runs that end early at an end-of-text token are taken as they are.

    python bench/generation.py                                 # smollm2-135m, greedy and four knobs
    python bench/generation.py --model random-gpt2 --runs 3    # a quick look
    python bench/generation.py --device cuda --dtype bfloat16 --out generation.json
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import statistics
import sys
import time

import torch
import transformers

import gptviz as gv
from gptviz.types.sampling import Sampling

PROMPT = "The storm had passed, and in the harbour the fishermen began to count their boats. The oldest of them said"
SETTINGS = {
    "greedy": Sampling(temperature=0.0),
    "pure sampling": Sampling(),
    "top-p 0.95": Sampling(top_p=0.95),
    "four knobs": Sampling(temperature=0.85, top_k=50, top_p=0.92, repetition_penalty=1.3),
}


def hugging_face_options(sampling: Sampling) -> dict:
    """The same request in `generate`'s words."""
    options = {"repetition_penalty": sampling.repetition_penalty, "do_sample": not sampling.greedy}
    if not sampling.greedy:
        options |= {"temperature": sampling.temperature, "top_k": sampling.top_k, "top_p": sampling.top_p}
    return options


def run_gptviz(lm, sampling: Sampling, n: int) -> tuple[int, float]:
    """(tokens, seconds), every step kept."""
    began = time.perf_counter()
    steps = list(lm.generate(PROMPT, sampling, n))
    return len(steps), time.perf_counter() - began


def run_hugging_face(lm, sampling: Sampling, n: int) -> tuple[int, float]:
    """(tokens, seconds) of `generate` from text to text."""
    torch.manual_seed(sampling.seed)
    began = time.perf_counter()
    ids = torch.tensor([lm.encode(PROMPT)], device=lm.device)
    out = lm.model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=n,
        pad_token_id=lm.eos_id or 0,
        **hugging_face_options(sampling),
    )
    new = out[0, ids.shape[1] :].tolist()
    lm.tokenizer.decode(new)
    return len(new), time.perf_counter() - began


def compare(lm, name: str, runs: int, n: int) -> dict:
    """Medians of both and their ratio, over `runs` alternating pairs after one warm-up each."""
    both = {"gptviz": run_gptviz, "hugging_face": run_hugging_face}
    rates: dict[str, list[float]] = {key: [] for key in both}
    for run in range(-1, runs):
        sampling = Sampling(**{**vars(SETTINGS[name]), "seed": max(run, 0)})
        order = list(both.items()) if run % 2 else list(both.items())[::-1]
        for key, function in order:
            tokens, seconds = function(lm, sampling, n)
            if run >= 0:
                rates[key].append(tokens / seconds)
    medians = {key: statistics.median(values) for key, values in rates.items()}
    pairs = [a / b for a, b in zip(rates["gptviz"], rates["hugging_face"], strict=True)]
    return {
        "setting": name,
        **{f"{key}_tokens_per_second": round(value, 3) for key, value in medians.items()},
        "ratio_of_medians": round(medians["gptviz"] / medians["hugging_face"], 4),
        "ratio_each_pair": [round(p, 4) for p in pairs],
    }


def main(arguments: list[str] | None = None) -> dict:
    """Measure, print a table, and write JSON with the command, seeds, device and date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--settings", nargs="+", default=["greedy", "four knobs"], choices=list(SETTINGS))
    parser.add_argument("--out", default="")
    options = parser.parse_args(arguments)
    lm = gv.load(options.model, device=options.device, dtype=options.dtype)
    result = {
        "command": "python bench/generation.py " + " ".join(arguments if arguments is not None else sys.argv[1:]),
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "model": lm.name,
        "device": torch.cuda.get_device_name(lm.device) if lm.device.type == "cuda" else platform.processor() or "cpu",
        "threads": torch.get_num_threads(),
        "dtype": str(lm.dtype).removeprefix("torch."),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "runs": options.runs,
        "seeds": f"0 to {options.runs - 1}",
        "new_tokens": options.tokens,
        "rows": [],
    }
    for name in options.settings:
        row = compare(lm, name, options.runs, options.tokens)
        result["rows"].append(row)
        print(
            f"{name:14s} gptviz {row['gptviz_tokens_per_second']:8.2f} tok/s   Hugging Face "
            f"{row['hugging_face_tokens_per_second']:8.2f} tok/s   ratio {row['ratio_of_medians']:.3f}",
            flush=True,
        )
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
    return result


if __name__ == "__main__":
    main()
