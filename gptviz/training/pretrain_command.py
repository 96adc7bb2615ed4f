"""`python -m gptviz pretrain`: a pre-training run from the command line, into a folder it can be resumed from.

Prints one line an event and appends it to FOLDER/events.jsonl. Ctrl-C stops after the step under way and saves.
"""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from gptviz import settings
from gptviz.training.presets import PRESETS, preset
from gptviz.types.training import TrainEvent

SUMMARY = "pre-train a GPT (and its tokenizer) on a folder of texts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the subcommand takes."""
    parser.add_argument("--preset", default="books-tiny", help=f"the run to make: {', '.join(PRESETS)}")
    parser.add_argument("--corpus", required=True, help="folder with train/ and valid/ (.txt or .txt.gz), or plain files")
    parser.add_argument("--out", help="run folder (default: GPTVIZ_HOME/pretrain/PRESET); a stopped run goes on from it")
    parser.add_argument("--device", help="cpu, cuda, cuda:1 ... (default: the preset's)")
    parser.add_argument("--threads", type=int, help="CPU threads (default: torch's)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="change one field, e.g. n_steps=200"
    )


def run(arguments: argparse.Namespace) -> int:
    """Make the run; 0 at its end or after a stop."""
    config = replace(preset(arguments.preset), corpus=arguments.corpus)
    if arguments.device:
        config = replace(config, device=arguments.device)
    for change in arguments.set:
        field, equals, value = change.partition("=")
        if not equals or field not in asdict(config):
            raise ValueError(f"--set takes FIELD=VALUE with a field of PretrainConfig, not {change!r}.")
        config = replace(config, **{field: _parsed(value)})
    import torch

    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    folder = Path(arguments.out) if arguments.out else settings.home() / "pretrain" / arguments.preset
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(asdict(config), indent=1))
    from gptviz.training.pretrain import pretrain

    should_stop = _stop_on_interrupt()
    with open(folder / "events.jsonl", "a", encoding="utf-8") as log:
        for event in pretrain(config, folder, should_stop=should_stop, cache=settings.home() / "corpora"):
            log.write(event.to_json() + "\n")
            log.flush()
            print(line(event), flush=True)
    return 0


def _parsed(value: str):
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


def _stop_on_interrupt() -> Callable[[], bool]:
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: asked.append(received))
    return lambda: bool(asked)


def line(event: TrainEvent) -> str:
    """One event as a line for people."""
    numbers = "  ".join(f"{name} {value:.4g}" for name, value in event.values.items())
    left = f"  {event.seconds_left / 60:.0f} min left" if event.kind == "step" and event.seconds_left else ""
    parts = [f"{event.step:>6}/{event.total_steps} {event.kind:<10}", numbers, event.text, event.path]
    return "  ".join(part for part in parts if part) + left
