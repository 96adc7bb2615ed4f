"""Structured inputs as token sequences: the four input transformations of GPT-1 (Section 3.3, Figure 1 right).

    classification   Start text Extract
    entailment       Start premise Delim hypothesis Extract
    similarity       Start a Delim b Extract  and  Start b Delim a Extract
    multiple choice  Start context question Delim choice Extract, once for each choice

Start, delimiter and extract are new rows appended to the embedding matrix, as in OpenAI's released code
(finetune-transformer-lm, train.py), so they can never collide with a token a reader types. Knows nothing of
weights: a tokenizer and the number of embedding rows are enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gptviz.types.language import frozen
from gptviz.types.tasks import (
    EXAMPLE_TYPES,
    Entailment,
    Example,
    MultipleChoice,
    Serialized,
    Similarity,
    SpecialTokens,
    TaskBatch,
    TokenSequence,
)

JOINS = {"classification": "one", "entailment": "one", "similarity": "add", "multiple_choice": "softmax"}
PIECES = {"start": "Start", "delimiter": "Delim", "extract": "Extract"}  # the words of Figure 1


def serialize(
    example: Example,
    tokenizer: Any,
    max_length: int | None = None,
    delimiter: str | None = None,
    special: SpecialTokens | None = None,
) -> Serialized:
    """Turn one example into the token sequences GPT-1 would read.

    tokenizer   a LanguageModel, or a Hugging Face tokenizer
    max_length  longest sequence in tokens, specials included; the model's own context length where None
    delimiter   None: a new token (GPT-1's code). A text: the model's own token or tokens of that text ("$").
    special     the special tokens of a model already fine-tuned; made for ``tokenizer`` where None

    A text that is too long loses tokens from its end, always from the part that is longest at that moment; no
    special token and no whole part is ever cut. The choices of one question keep the same context. Raises
    ValueError where ``max_length`` cannot hold the special tokens and one token of every part.
    """
    if not isinstance(example, tuple(EXAMPLE_TYPES.values())):
        raise ValueError(
            f"cannot serialize a {type(example).__name__}; use Classification, Entailment, Similarity "
            "or MultipleChoice."
        )
    if special is None:
        special = special_tokens(tokenizer, delimiter)
    elif delimiter is not None:
        raise ValueError("give either delimiter or special, not both: special already holds its delimiter.")
    longest = context_length(tokenizer)
    if max_length is None:
        max_length = longest
    if max_length is not None and (isinstance(max_length, bool) or not isinstance(max_length, int)):
        raise ValueError(f"max_length {max_length!r} must be a whole number of tokens.")
    if max_length is not None and longest is not None and max_length > longest:
        raise ValueError(f"max_length {max_length} is longer than the model's context of {longest} tokens.")

    parts = {name: _tokens(tokenizer, text, name, joined=name == "question" and _has_context(example))
             for name, text in example.parts}
    whole = {name: len(ids) for name, (ids, _) in parts.items()}
    overhead = 2 if example.form == "classification" else 2 + len(special.delimiter)
    kept = _kept_lengths(example, parts, max_length, overhead)

    sequences = []
    for left, right in _layout(example):
        ids, pieces, roles = [special.start], [PIECES["start"]], ["start"]
        for side, names in enumerate((left, right)):
            if side and names:
                ids += special.delimiter
                pieces += special.delimiter_pieces
                roles += ["delimiter"] * len(special.delimiter)
            for name in names:
                part_ids, part_pieces = parts[name]
                ids += part_ids[: kept[name]]
                pieces += part_pieces[: kept[name]]
                roles += [name] * kept[name]
        ids.append(special.extract)
        pieces.append(PIECES["extract"])
        roles.append("extract")
        cut = tuple((n, whole[n] - kept[n]) for n in (*left, *right) if kept[n] < whole[n])
        sequences.append(TokenSequence(tuple(ids), tuple(pieces), tuple(roles), len(ids) - 1, cut))
    return Serialized(example.form, tuple(sequences), JOINS[example.form], special, example.label)


def special_tokens(tokenizer: Any, delimiter: str | None = None) -> SpecialTokens:
    """Number the new rows for this model: start, delimiter (where it is a new token), extract.

    >>> from types import SimpleNamespace as Model
    >>> special_tokens(Model(spec=Model(vocab_size=500, n_ctx=64), tokenizer=range(500))).new_ids
    (500, 501, 502)
    """
    base = embedding_rows(tokenizer)
    if delimiter is None:
        return SpecialTokens(base, base, (base + 1,), (PIECES["delimiter"],), base + 2)
    if not isinstance(delimiter, str) or not delimiter.strip():
        raise ValueError(f"delimiter {delimiter!r} is empty; write a text such as $, or None for a new token.")
    ids, pieces = _tokens(tokenizer, delimiter, "delimiter")
    return SpecialTokens(base, base, tuple(ids), tuple(pieces), base + 1)


def embedding_rows(tokenizer: Any) -> int:
    """Rows of the embedding matrix: the first id that no token of the model has."""
    spec = getattr(tokenizer, "spec", None)
    inner = getattr(tokenizer, "tokenizer", tokenizer)
    known = len(inner) if hasattr(inner, "__len__") else 0
    return max(spec.vocab_size if spec is not None else 0, known)


def context_length(tokenizer: Any) -> int | None:
    """Longest sequence the model can read, in tokens, or None where only a tokenizer is known."""
    spec = getattr(tokenizer, "spec", None)
    return spec.n_ctx if spec is not None else None


def batch(serialized: Sequence[Serialized] | Iterable[Serialized]) -> TaskBatch:
    """Pad the sequences of several examples of one form on the right, with masks. Raises ValueError on mixed forms."""
    items = list(serialized)
    if not items:
        raise ValueError("an empty batch has no shape; give at least one serialized example.")
    forms = sorted({item.form for item in items})
    if len(forms) > 1:
        raise ValueError(f"a batch holds one task form, got {', '.join(forms)}.")
    if len({item.special for item in items}) > 1:
        raise ValueError("a batch needs one set of special tokens; these examples were serialized with several.")
    rows = [(owner, sequence) for owner, item in enumerate(items) for sequence in item.sequences]
    width = max(len(sequence) for _, sequence in rows)
    ids = np.zeros((len(rows), width), dtype=np.int64)  # (N, T)
    mask = np.zeros((len(rows), width), dtype=np.int64)  # (N, T)
    for row, (_, sequence) in enumerate(rows):
        ids[row, : len(sequence)] = sequence.ids
        mask[row, : len(sequence)] = 1
    return TaskBatch(
        form=forms[0],
        join=items[0].join,
        ids=frozen(ids),
        attention_mask=frozen(mask),
        extract=frozen(np.array([sequence.extract for _, sequence in rows], dtype=np.int64)),
        owner=frozen(np.array([owner for owner, _ in rows], dtype=np.int64)),
        labels=tuple(item.label for item in items),
        special=items[0].special,
    )


def _has_context(example: Example) -> bool:
    return isinstance(example, MultipleChoice) and bool(example.context.strip())


def _layout(example: Example) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """For each sequence: the names of the parts before and after the delimiter."""
    if isinstance(example, Entailment):
        return [(("premise",), ("hypothesis",))]
    if isinstance(example, Similarity):
        return [(("text_a",), ("text_b",)), (("text_b",), ("text_a",))]
    if isinstance(example, MultipleChoice):
        shared = tuple(name for name, _ in example.parts if not name.startswith("choice"))
        return [(shared, (f"choice {number}",)) for number in range(len(example.choices))]
    return [(("text",), ())]


def _tokens(tokenizer: Any, text: str, name: str, joined: bool = False) -> tuple[list[int], list[str]]:
    """Ids and readable pieces of a part; ``joined``: it follows another part on the same line, after a space."""
    if joined:
        text = " " + text.lstrip()
    if hasattr(tokenizer, "tokenize") and hasattr(tokenizer, "spec"):
        tokens = tokenizer.tokenize(text)
        ids, pieces = list(tokens.ids), list(tokens.pieces)
    elif callable(tokenizer) and hasattr(tokenizer, "decode"):
        # split_special_tokens: "<|endoftext|>" typed by a reader is text like any other
        ids = list(tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"])
        pieces = [tokenizer.decode([i]) for i in ids]
    else:
        raise ValueError(f"{type(tokenizer).__name__} is neither a loaded model nor a tokenizer.")
    if not ids:
        raise ValueError(f"{name} has no token under this tokenizer: {text[:40]!r}; write at least one word.")
    return ids, pieces


def _kept_lengths(example: Example, parts: dict, max_length: int | None, overhead: int) -> dict[str, int]:
    """Tokens kept of each part so that every sequence fits.

    The choices of a question compete with its context as one part of the length of the longest choice, so that
    all sequences keep the same context. Equal lengths are told apart by their ids, not by their place, so that a
    pair of texts is cut alike in both orders.
    """
    lengths = {name: len(ids) for name, (ids, _) in parts.items()}
    if max_length is None:
        return lengths
    choices = [name for name in parts if name.startswith("choice")]
    shared = [name for name in parts if name not in choices]
    longest = max(choices, key=lambda name: (lengths[name], parts[name][0])) if choices else None
    rivals = {name: lengths[name] for name in [*shared, *([longest] if longest else [])]}
    room = max_length - overhead
    if room < len(rivals):
        raise ValueError(
            f"max_length {max_length} is too short: {overhead} special tokens and one token for each of "
            f"{len(rivals)} parts need at least {overhead + len(rivals)}."
        )
    order = {name: parts[name][0] for name in rivals}
    excess = sum(rivals.values()) - room
    while excess > 0:
        top = max(rivals.values())
        level = [name for name in rivals if rivals[name] == top]
        below = max((n for n in rivals.values() if n < top), default=1)
        step = min(top - below, excess // len(level))
        if step:  # every longest part loses the same whole number of tokens
            for name in level:
                rivals[name] -= step
            excess -= step * len(level)
        else:
            for name in sorted(level, key=lambda name: order[name], reverse=True)[:excess]:
                rivals[name] -= 1
            excess = max(0, excess - len(level))
    kept = {name: rivals[name] for name in shared}
    for name in choices:
        kept[name] = min(lengths[name], rivals[longest])
    return kept
