"""``python -m gptviz zeroshot``: measure the zero-shot rules on labelled sets and keep the scores with their origin.

    python -m gptviz zeroshot --model smollm2-135m --data sentiment=sentiment --data winograd=winograd --out scores.json

Each record states model, rule, set, number of examples, seed, device, date and command. A record of the same model,
step, rule and set replaces the older one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from gptviz.types.zero_shot import RULES


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit code. Problems are one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="python -m gptviz zeroshot", description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True, help="name or folder of a model, as in gv.load")
    parser.add_argument("--label", help="name to record instead of the model's")
    parser.add_argument("--step", type=int, help="pre-training step of the checkpoint, where it has one")
    parser.add_argument("--data", action="append", required=True, metavar="RULE=SET", help="a rule and a set or folder")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--limit", type=int, help="at most so many examples of each set, drawn with the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON file of records to add to; none: print only")
    args = parser.parse_args(argv)
    try:
        records = measure(args)
    except ValueError as error:
        print(f"zeroshot: {error}", file=sys.stderr)
        return 2
    if args.out:
        merge(args.out, records)
    return 0


def measure(args: argparse.Namespace) -> list[dict]:
    """Measure every rule and set asked for; one line is printed for each."""
    import gptviz as gv
    from gptviz.analysis.zero_shot import zero_shot
    from gptviz.tasks.datasets import load_data

    plan = []
    for item in args.data:
        rule, equals, source = item.partition("=")
        if not equals or rule not in RULES:
            raise ValueError(f"--data {item!r} is not RULE=SET; the rules are {', '.join(RULES)}.")
        plan.append((rule, load_data(source, split=args.split)))
    lm = gv.load(args.model)
    records = []
    for rule, data in plan:
        examples = list(data.examples)
        if args.limit and len(examples) > args.limit:
            examples = random.Random(args.seed).sample(examples, args.limit)
        began = time.perf_counter()
        result = zero_shot(lm, rule, examples, seed=args.seed)
        seconds = time.perf_counter() - began
        records.append(
            {
                **result.record(),
                "model": args.label or lm.name,
                "step": args.step,
                "data": data.name,
                "split": args.split,
                "n_in_split": len(data),
                "n_cut": sum(any(c.n_cut for c in verdict.candidates) for verdict in result.verdicts),
                "seconds": round(seconds, 1),
                **origin(lm, args),
            }
        )
        shown = ", ".join(f"{s.metric} {s.value:.3f} [{s.low:.3f}, {s.high:.3f}]" for s in result.scores)
        print(f"{args.label or lm.name} {rule} {data.name} n={len(result)}: {shown} ({seconds:.0f} s)", flush=True)
    return records


def origin(lm, args: argparse.Namespace) -> dict:
    """Command (folders shortened to DIR), device, library and date of a measurement."""
    import torch

    sets = [f"--data {rule}={_short(source)}" for rule, _, source in (item.partition("=") for item in args.data)]
    parts = ["python -m gptviz zeroshot", f"--model {_short(args.model)}", *sets, f"--split {args.split}"]
    if args.limit:
        parts.append(f"--limit {args.limit}")
    return {
        "command": " ".join([*parts, f"--seed {args.seed}"]),
        "device": f"{lm.device}, {processor()}, {torch.get_num_threads()} threads"
        if lm.device.type == "cpu"
        else f"{lm.device}, {torch.cuda.get_device_name(lm.device)}",
        "dtype": str(lm.dtype).removeprefix("torch."),
        "torch": torch.__version__,
        "date": datetime.now(UTC).date().isoformat(),
    }


def processor() -> str:
    """The processor's name as the system states it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def merge(file: Path, records: list[dict]) -> None:
    """Add records to a file; one of the same model, step, rule, set and split is replaced. Written by rename."""
    old = json.loads(file.read_text("utf-8")) if file.is_file() else []
    same = ("model", "step", "rule", "data", "split")
    new = {tuple(record[key] for key in same) for record in records}
    kept = [record for record in old if tuple(record.get(key) for key in same) not in new]
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.write_text(json.dumps([*kept, *records], indent=1, ensure_ascii=False) + "\n", "utf-8")
    draft.replace(file)


def _short(source: str) -> str:
    """A bundled name as it is; of a folder only its own name, since where it lies says nothing."""
    return source if os.sep not in source else f"DIR/{Path(source).name}"


if __name__ == "__main__":
    raise SystemExit(main())
