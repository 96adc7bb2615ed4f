"""Log-probabilities of the tokens of many texts, batched: padded on the right, equal inputs read once.

Knows nothing of tasks. Equal to one forward pass per text to float accuracy, since causal attention never looks
right and the padding stands right of everything that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from gptviz.types.language import frozen

BATCH_TOKENS = 2048  # padded tokens in one forward pass


class Stopped(Exception):
    """Raised between two batches where the caller asked to stop."""


def token_log_probabilities(
    lm,
    texts: Sequence[Sequence[int]],
    first: Sequence[int],
    batch_tokens: int = BATCH_TOKENS,
    progress: Callable[[int, int], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> list[np.ndarray]:
    """Log-probability (nats) of token t given tokens before it, for t from ``first`` to the end of each text.

    texts   token ids, each at least two long and at most the context; ``first`` >= 1, since nothing precedes token 0
    Returns one read-only float64 array (T - first,) for each text. Raises Stopped, or ValueError on a bad length.
    """
    for ids, start in zip(texts, first, strict=True):
        if not 1 <= start < len(ids):
            raise ValueError(f"cannot score from token {start} of {len(ids)}; a scored token needs one before it.")
        if len(ids) - 1 > lm.spec.n_ctx:
            raise ValueError(f"a text of {len(ids):,} tokens is longer than the context of {lm.spec.n_ctx:,}.")
    # The last token is only predicted, never read: texts that differ in it alone share one input.
    readers: dict[tuple[int, ...], list[int]] = {}
    for number, ids in enumerate(texts):
        readers.setdefault(tuple(ids[:-1]), []).append(number)
    inputs = sorted(readers, key=len)
    out: list[np.ndarray | None] = [None] * len(texts)
    done = 0
    for packed in _packs(inputs, batch_tokens):
        if should_stop is not None and should_stop():
            raise Stopped
        with lm.lock, torch.inference_mode():
            hidden = _hidden(lm, packed)  # (B, T, D)
            for row, ids in enumerate(packed):
                for number in readers[ids]:
                    start, text = first[number], texts[number]
                    states = hidden[row, start - 1 : len(text) - 1]  # position t - 1 predicts token t
                    logits = lm.model.get_output_embeddings()(states).float() if _fast(lm) else states
                    targets = torch.tensor(list(text[start:]), device=logits.device)
                    picked = logits.gather(1, targets[:, None])[:, 0]
                    out[number] = frozen((picked - logits.logsumexp(-1)).double().cpu().numpy())
                    done += 1
        if progress is not None:
            progress(done, len(texts))
    return out


def _packs(inputs: Sequence[tuple[int, ...]], batch_tokens: int) -> list[list[tuple[int, ...]]]:
    """Neighbours in length together, so that little is padding."""
    packs: list[list[tuple[int, ...]]] = []
    for ids in inputs:
        if packs and len(ids) * (len(packs[-1]) + 1) <= batch_tokens:
            packs[-1].append(ids)
        else:
            packs.append([ids])
    return packs


def _fast(lm) -> bool:
    """Known families apply the output weights to the last hidden state and nothing else, so a few rows suffice."""
    return not lm.spec.family.startswith("other")


def _hidden(lm, packed: Sequence[tuple[int, ...]]) -> torch.Tensor:
    """Last hidden states (B, T, D), or logits (B, T, V) for a family whose head may do more than multiply."""
    width = max(map(len, packed))
    ids = torch.zeros(len(packed), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, tokens in enumerate(packed):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        mask[row, : len(tokens)] = 1
    named = {"input_ids": ids.to(lm.device), "attention_mask": mask.to(lm.device)}
    if not _fast(lm):
        return lm.model(**named, use_cache=False).logits.float()
    lm.forward_calls += 1
    if lm.spec.family == "gpt1":  # has no cache to switch off
        return lm.model.base_model(**named).last_hidden_state
    return lm.model.base_model(**named, use_cache=False).last_hidden_state
