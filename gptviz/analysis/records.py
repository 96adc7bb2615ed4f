"""Generation records: made from steps, kept as JSON, replayed to any step, branched from there.

What it is: the round trip GenerationRecord -> JSON -> GenerationRecord, exact to the last digit, and a
branch that goes on from a step with another token and the luck of the same seed.
What it does not know: files, pages. A loaded file is data from a stranger: every field is checked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace

from gptviz.models.generation import generate
from gptviz.types.sampling import (
    STAGE_NAMES,
    Candidate,
    GenerationRecord,
    GenerationStep,
    Sampling,
    StageSummary,
)

FORMAT, VERSION = "gptviz-generation", 1
MAX_STEPS = 10_000
"""Most steps a loaded record may have."""


def record_of(lm, prompt: str, sampling: Sampling, steps: Iterable[GenerationStep]) -> GenerationRecord:
    """The record of a continuation; it reads "stopped" where the last step gives no reason to end."""
    steps = tuple(steps)
    finish = (steps[-1].finish if steps else "") or "stopped"
    return GenerationRecord(lm.name, prompt, tuple(lm.encode(prompt)), sampling, steps, finish)


def branch(
    lm,
    record: GenerationRecord,
    step: int,
    token_id: int,
    max_new_tokens: int,
    sampling: Sampling | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Iterator[GenerationStep]:
    """Go back to `step`, take `token_id` there, and go on to `max_new_tokens` new tokens in all.

    Yields the steps from `step` on; the earlier ones are `record.upto(step).steps`. Branching with the token
    the record took, and its sampling, gives the record's own continuation again.
    Raises ValueError for a step the record does not have or a token the model does not have.
    """
    if step == len(record.steps):
        raise ValueError(f"There is no step {step} to branch from; this record has steps 0 to {step - 1}.")
    before = record.upto(step)
    return generate(
        lm,
        record.prompt_ids,
        sampling or record.sampling,
        max_new_tokens,
        continued=before.token_ids,
        forced=token_id,
        should_stop=should_stop,
    )


def save(record: GenerationRecord) -> str:
    """The record as one JSON object; `load` gives back an equal record."""
    body = {"format": FORMAT, "version": VERSION, "stage_names": list(STAGE_NAMES), **asdict(record)}
    for step in body["steps"]:
        del step["stages"], step["candidates"]
    for step, kept in zip(body["steps"], record.steps, strict=True):
        step["stages"] = [[s.setting, s.active, s.n_survivors, s.mass_cut, s.entropy] for s in kept.stages]
        step["candidates"] = [[c.id, c.piece, c.logit, list(c.stage_probabilities)] for c in kept.candidates]
    return json.dumps(body, ensure_ascii=False, indent=None, separators=(",", ":"))


def load(text: str | bytes) -> GenerationRecord:
    """The record in `text`. Raises ValueError, in one sentence, for anything that is not a saved record."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError("This file is not JSON; choose a record saved from the Sampling page.") from error
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise ValueError("This JSON is not a generation record; choose one saved from the Sampling page.")
    if body.get("version") != VERSION or body.get("stage_names") != list(STAGE_NAMES):
        raise ValueError(
            f"This record has version {body.get('version')!r}; this program reads version {VERSION}."
        )
    try:
        record = _record(body)
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(
            f"This record is damaged: a field is missing or of the wrong kind ({error})."
        ) from error
    return record


def _typed(value: object, *kinds: type) -> object:
    """`value` if it is exactly of one of `kinds` (a bool is no int), else TypeError."""
    if type(value) not in kinds:
        raise TypeError(f"{str(value)[:40]!r} is a {type(value).__name__}")
    return value


def _number(value: object) -> float:
    if math.isnan(_typed(value, int, float)):
        raise TypeError("a number is NaN")
    return float(value)


def _record(body: dict) -> GenerationRecord:
    steps = _typed(body["steps"], list)
    if len(steps) > MAX_STEPS:
        raise ValueError(f"This record has {len(steps):,} steps; at most {MAX_STEPS:,} can be shown.")
    made = tuple(_step(s) for s in steps)
    if [s.index for s in made] != list(range(len(made))):
        raise ValueError("This record is damaged: its steps are not numbered 0, 1, 2 and so on.")
    return GenerationRecord(
        model=_typed(body["model"], str),
        prompt=_typed(body["prompt"], str),
        prompt_ids=tuple(_typed(i, int) for i in _typed(body["prompt_ids"], list)),
        sampling=Sampling(**_typed(body["sampling"], dict)),
        steps=made,
        finish=_typed(body["finish"], str),
    )


def _step(body: dict) -> GenerationStep:
    stages = tuple(
        StageSummary(
            name,
            None if s[0] is None else _number(s[0]),
            _typed(s[1], bool),
            _typed(s[2], int),
            *map(_number, s[3:]),
        )
        for name, s in zip(STAGE_NAMES, body["stages"], strict=True)
    )
    candidates = tuple(
        Candidate(_typed(i, int), _typed(piece, str), _number(logit), tuple(map(_number, table)))
        for i, piece, logit, table in body["candidates"]
    )
    if any(len(c.stage_probabilities) != len(STAGE_NAMES) for c in candidates):
        raise ValueError("This record is damaged: a candidate does not have one probability a stage.")
    return GenerationStep(
        index=_typed(body["index"], int),
        token_id=_typed(body["token_id"], int),
        piece=_typed(body["piece"], str),
        delta=_typed(body["delta"], str),
        probability=_number(body["probability"]),
        raw_probability=_number(body["raw_probability"]),
        rank=_typed(body["rank"], int),
        surprisal=_number(body["surprisal"]),
        entropy=_number(body["entropy"]),
        candidates=candidates,
        stages=stages,
        forced=_typed(body["forced"], bool),
        context_start=_typed(body["context_start"], int),
        finish=_typed(body["finish"], str),
    )


def with_branch(record: GenerationRecord, step: int, steps: Iterable[GenerationStep]) -> GenerationRecord:
    """The record up to `step`, then the steps of a branch."""
    before = record.upto(step).steps
    after = tuple(steps)
    finish = (after[-1].finish if after else "") or "stopped"
    return replace(record, steps=before + after, finish=finish)
