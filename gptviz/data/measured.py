"""What this project measured and ships: one JSON file a subject, each record with command, seed, device and date."""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "measured"


def measured(name: str) -> list[dict]:
    """The records of one subject, such as "zero_shot"; an empty list where nothing was measured yet."""
    file = FOLDER / f"{name}.json"
    return json.loads(file.read_text("utf-8")) if file.is_file() else []
