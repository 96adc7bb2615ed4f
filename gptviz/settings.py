"""Settings from the environment, read when asked and never at import.

GPTVIZ_HOME          where fetched models and runs live (default ~/.cache/gptviz)
GPTVIZ_OFFLINE       1: never touch the network
GPTVIZ_MODEL_ROOTS   folders under which a local model folder may lie, separated as in PATH
                     (default: GPTVIZ_HOME and the working folder)
GPTVIZ_MAX_MODELS    models kept in memory at once (default 2)
GPTVIZ_DEVICE        device asked for by default (default "auto")
"""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """The folder for everything gptviz keeps between sessions; it may not exist yet."""
    return Path(os.environ.get("GPTVIZ_HOME") or Path.home() / ".cache" / "gptviz").expanduser().resolve()


def offline() -> bool:
    """Whether the network is off limits."""
    return os.environ.get("GPTVIZ_OFFLINE", "") not in ("", "0")


def model_roots() -> list[Path]:
    """Folders under which a local model may lie, symbolic links resolved."""
    given = os.environ.get("GPTVIZ_MODEL_ROOTS")
    roots = given.split(os.pathsep) if given else [str(home()), "."]
    return [Path(root).expanduser().resolve() for root in roots if root]


def max_models() -> int:
    """Models kept in memory at once, at least 1. ValueError where the setting is not a whole number."""
    given = os.environ.get("GPTVIZ_MAX_MODELS", "2")
    if not given.isdigit() or int(given) < 1:
        raise ValueError(f"GPTVIZ_MAX_MODELS is {given!r}; it must be a whole number from 1 up.")
    return int(given)


def default_device() -> str:
    """The device asked for where the caller names none."""
    return os.environ.get("GPTVIZ_DEVICE") or "auto"
