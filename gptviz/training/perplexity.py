"""How well a model predicts held-out text: nats per token, perplexity per token and per byte; and a short sample.

Per byte makes tokenizers comparable: the same nats are divided by the bytes the predicted tokens stand for.
Knows nothing about training.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gptviz.training.corpus import Books
from gptviz.training.tokenizer_training import END_OF_TEXT, token_bytes

BATCH = 8


@dataclass(frozen=True)
class HeldOut:
    """The total over the predicted tokens of a held-out text."""

    nats: float
    tokens: int
    bytes: int

    def values(self) -> dict[str, float]:
        """The four scores by name."""
        per_token, per_byte = self.nats / self.tokens, self.nats / self.bytes
        return {
            "valid_loss": per_token,
            "valid_perplexity": math.exp(per_token),
            "valid_nats_per_byte": per_byte,
            "valid_perplexity_per_byte": math.exp(per_byte),
            "valid_predictions": float(self.tokens),
        }


def held_out(model, tokenizer, books: Books, n_ctx: int, windows: int | None = None) -> HeldOut:
    """Score `model` on windows of `n_ctx` predictions that do not overlap and do not cross a book.

    Every window starts without context. With `windows`, that many of them, evenly spread over the text; a text too
    short for one window is read in shorter ones.
    """
    import torch

    longest = int(np.diff(books.starts).max())
    n_ctx = min(n_ctx, longest - 1)
    if n_ctx < 1:
        raise ValueError("There is no held-out text to score: it has fewer than two tokens.")
    starts = books.windows(n_ctx)
    if windows is not None and windows < len(starts):
        starts = starts[np.linspace(0, len(starts) - 1, windows).round().astype(int)]
    sizes = torch.from_numpy(token_bytes(tokenizer))
    nats, n_bytes, was_training = 0.0, 0, model.training
    model.eval()
    with torch.no_grad():
        for first in range(0, len(starts), BATCH):
            batch = torch.from_numpy(books.batch(starts[first : first + BATCH], n_ctx))
            ids = batch.to(model.device)
            logits = model(input_ids=ids[:, :-1]).logits.float()  # (B, T, V)
            nats += float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="sum"))
            n_bytes += int(sizes[batch[:, 1:]].sum())
    model.train(was_training)
    return HeldOut(nats, len(starts) * n_ctx, n_bytes)


def sample_text(model, tokenizer, prompt: str, n_tokens: int, n_ctx: int, seed: int) -> str:
    """`prompt` and `n_tokens` sampled after it (temperature 0.8, the 40 most likely tokens), from a seed."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    ids = tokenizer.encode(prompt, add_special_tokens=False).ids or [tokenizer.token_to_id(END_OF_TEXT)]
    was_training = model.training
    model.eval()
    with torch.no_grad():
        for _ in range(n_tokens):
            context = torch.tensor([ids[-n_ctx:]], device=model.device)
            logits = model(input_ids=context).logits[0, -1].float().cpu() / 0.8  # (V,)
            top = logits.topk(min(40, len(logits)))
            chosen = torch.multinomial(top.values.softmax(0), 1, generator=generator)
            ids.append(int(top.indices[chosen]))
    model.train(was_training)
    return tokenizer.decode(ids, skip_special_tokens=True)
