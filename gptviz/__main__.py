"""`python -m gptviz COMMAND`: the command line. Each command is a module with SUMMARY, add_arguments and run."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

COMMANDS = {
    # name: module; it is imported only when the command line names it or asks for help
    "pretrain": "gptviz.training.pretrain_command",
}


def main(argv: list[str] | None = None) -> int:
    """Run one command; its exit status, 2 for a mistake on the command line or in its values."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="python -m gptviz", description="GPT-1 and GPT-2 explained, from a terminal.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        if argv and argv[0] in COMMANDS and argv[0] != name:
            continue
        loaded = import_module(module)
        command = commands.add_parser(name, help=loaded.SUMMARY, description=loaded.SUMMARY)
        loaded.add_arguments(command)
        command.set_defaults(run=loaded.run)
    arguments = parser.parse_args(argv)
    try:
        return arguments.run(arguments)
    except ValueError as mistake:
        print(f"{parser.prog}: {mistake}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
