"""A folder of texts as token arrays, cut into contiguous windows that never cross a book.

A corpus folder holds `train/` and `valid/` with one `.txt` or `.txt.gz` file a book; a folder (or a list of texts)
without that split holds out the last tenth of every book. GPT-1, Section 4.1: long stretches of contiguous text are
what lets the model learn long-range structure. Knows nothing about models.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HELD_OUT = 0.1
"""The part of each book held out where the folder has no `valid/`."""


@dataclass(frozen=True)
class Books:
    """The tokens of many books, one after the other: `tokens[starts[i]:starts[i + 1]]` is book i."""

    tokens: np.ndarray  # (N,) uint16 or int32
    starts: np.ndarray  # (books + 1,) int64
    names: tuple[str, ...]

    def windows(self, n_ctx: int, rng: np.random.Generator | None = None) -> np.ndarray:
        """(W,) int64: where each window of `n_ctx` predictions starts; it reads `n_ctx + 1` tokens of one book.

        Windows follow each other without overlap. With `rng`, each book's first window starts at a random place and
        the order is shuffled, so that every epoch cuts the books elsewhere; without, they run from the first token.
        A book shorter than a window has none.
        """
        cuts = []
        for first, end in zip(self.starts[:-1], self.starts[1:], strict=True):
            spare = int(end - first) - (n_ctx + 1)
            if spare >= 0:
                shift = int(rng.integers(0, min(n_ctx - 1, spare) + 1)) if rng is not None else 0
                cuts.append(np.arange(first + shift, end - n_ctx, n_ctx, dtype=np.int64))
        starts = np.concatenate(cuts) if cuts else np.zeros(0, dtype=np.int64)
        if rng is not None:
            rng.shuffle(starts)
        return starts

    def batch(self, starts: np.ndarray, n_ctx: int) -> np.ndarray:
        """(B, n_ctx + 1) int64: the tokens of the windows that begin at `starts`."""
        return self.tokens[starts[:, None] + np.arange(n_ctx + 1)].astype(np.int64)


class WindowOrder:
    """The windows of every step, from a seed alone: step s of a run is the same whenever it is asked for."""

    def __init__(self, books: Books, n_ctx: int, batch_size: int, seed: int) -> None:
        self._books, self._n_ctx, self._batch_size, self._seed = books, n_ctx, batch_size, seed
        self._epochs: dict[int, np.ndarray] = {}
        self._per_epoch = min(len(self._epoch(e)) for e in range(2)) // batch_size
        if not self._per_epoch:
            raise ValueError(
                f"The text is too short: {len(books.tokens):,} tokens give fewer than the {batch_size} windows of "
                f"{n_ctx} tokens that one step needs; use more text, a smaller batch or a shorter context."
            )

    def _epoch(self, epoch: int) -> np.ndarray:
        if epoch not in self._epochs:
            order = self._books.windows(self._n_ctx, np.random.default_rng([self._seed, epoch]))
            self._epochs = {**dict(list(self._epochs.items())[-1:]), epoch: order}
        return self._epochs[epoch]

    def batch(self, step: int) -> np.ndarray:
        """(B, n_ctx + 1) int64: the tokens of step `step`, counted from 0."""
        epoch, place = divmod(step, self._per_epoch)
        starts = self._epoch(epoch)[place * self._batch_size : (place + 1) * self._batch_size]
        return self._books.batch(starts, self._n_ctx)


def read_books(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The train and the held-out texts of a corpus folder, by file name.

    Raises ValueError where the folder is missing or holds no text.
    """
    if not folder.is_dir():
        raise ValueError(f"There is no corpus folder {str(folder)!r}; give a folder with .txt or .txt.gz files.")
    if (folder / "train").is_dir():
        train, valid = (dict(_texts(folder / part)) for part in ("train", "valid"))
    else:
        train, valid = hold_out(dict(_texts(folder)))
    if not train:
        raise ValueError(f"The corpus folder {str(folder)!r} holds no .txt or .txt.gz file.")
    if not valid:
        train, valid = hold_out(train)
    return train, valid


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("*.txt*")) if folder.is_dir() else ():
        if path.name.endswith(".txt.gz"):
            yield path.name, gzip.decompress(path.read_bytes()).decode("utf-8")
        elif path.suffix == ".txt":
            yield path.name, path.read_text(encoding="utf-8", errors="replace")


def hold_out(texts: dict[str, str], part: float = HELD_OUT) -> tuple[dict[str, str], dict[str, str]]:
    """Every text cut in two: its beginning to train on, its last `part` held out."""
    cut = {name: round(len(text) * (1 - part)) for name, text in texts.items()}
    return ({n: t[: cut[n]] for n, t in texts.items()}, {n: t[cut[n] :] for n, t in texts.items()})


def tokenize_books(texts: dict[str, str], tokenizer, cache: Path | None = None) -> Books:
    """The books' tokens, each led by the end-of-text token; kept in the folder `cache` for the next run if given."""
    key = hashlib.sha256(tokenizer.to_str().encode())
    for name, text in texts.items():
        key.update(f"{name}\0{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}".encode())
    stem = None if cache is None else cache / key.hexdigest()[:16]
    if stem is not None and stem.with_suffix(".json").exists():
        index = json.loads(stem.with_suffix(".json").read_text())
        tokens = np.load(stem.with_suffix(".npy"), mmap_mode="r", allow_pickle=False)
        return Books(tokens, np.array(index["starts"], dtype=np.int64), tuple(index["names"]))
    dtype = np.uint16 if tokenizer.get_vocab_size() <= 2**16 else np.int32
    end_of_text = tokenizer.token_to_id("<|endoftext|>")
    arrays = []
    for text in texts.values():
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        arrays.append(np.array([end_of_text, *ids], dtype=dtype))
    starts = np.concatenate([[0], np.cumsum([len(a) for a in arrays])]).astype(np.int64)
    books = Books(np.concatenate(arrays), starts, tuple(texts))
    if stem is not None:
        stem.parent.mkdir(parents=True, exist_ok=True)
        np.save(stem.with_suffix(".npy"), books.tokens, allow_pickle=False)
        stem.with_suffix(".json").write_text(json.dumps({"starts": starts.tolist(), "names": list(texts)}))
    return books
