"""What a training run says while it runs: one frozen event after another.

Every training function of this project is a generator of `TrainEvent`; a run folder stores them one JSON object a
line. Knows nothing about models, optimisers or files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

EventKind = Literal["start", "step", "validation", "sample", "checkpoint", "stage", "end"]
"""`start`: the run's facts; `step`: training losses; `validation`: scores on held-out data; `sample`: text the model
wrote; `checkpoint`: weights were saved; `stage`: what is being prepared; `end`: finished or stopped."""


@dataclass(frozen=True)
class TrainEvent:
    """One thing that happened in a training run.

    `values` holds the numbers by name (losses in nats per token unless the name says otherwise), `text` a sentence or
    a generated sample, `path` the folder a checkpoint was written to.
    """

    kind: EventKind
    step: int
    total_steps: int
    tokens: int = 0
    """Tokens trained on so far."""
    seconds: float = 0.0
    """Seconds spent training so far, over all sittings of a resumed run."""
    values: Mapping[str, float] = field(default_factory=dict)
    text: str = ""
    path: str = ""

    @property
    def progress(self) -> float:
        """The part of the run that is done, from 0 to 1."""
        return min(1.0, self.step / self.total_steps) if self.total_steps else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The time left at the speed so far; None before the first step."""
        return self.seconds / self.step * (self.total_steps - self.step) if self.step else None

    def to_json(self) -> str:
        """The event as one line of JSON."""
        return json.dumps(asdict(self) | {"values": dict(self.values)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> TrainEvent:
        """The event that `to_json` wrote.

        >>> event = TrainEvent("step", 3, 10, tokens=96, values={"loss": 2.5})
        >>> TrainEvent.from_json(event.to_json()) == event
        True
        """
        return cls(**json.loads(line))
