"""The token loop: a model and a sampling request in, one `GenerationStep` at a time out.

What it is: the same forward passes as Hugging Face's `generate` (one over the prompt, then one per token with
a key-value cache), with the whole choice recorded at every step. The loop holds the model's lock only during
a forward pass, so two continuations of one model can run side by side.
What it does not know: pages, files, decoding that looks ahead (`gptviz.analysis.decoding`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence

import torch
from transformers import DynamicCache

from gptviz.analysis.sampling import StagedDistribution, generator_at
from gptviz.models.pieces import readable
from gptviz.types.sampling import Candidate, GenerationStep, Sampling


class TextStream:
    """Bytes in, whole characters out: what is not yet a character waits, what never can be one reads ‹FF›.

    >>> stream = TextStream()
    >>> [stream.feed(b) for b in (b"a\\xc3", b"\\xa9", b"\\xff")]
    ['a', 'é', '‹FF›']
    """

    def __init__(self) -> None:
        self.pending = b""

    def feed(self, data: bytes) -> str:
        """The text that `data` completes."""
        self.pending += data
        text = ""
        while self.pending:
            try:
                text += self.pending.decode("utf-8")
                self.pending = b""
            except UnicodeDecodeError as error:
                text += self.pending[: error.start].decode("utf-8")
                if error.reason == "unexpected end of data":
                    self.pending = self.pending[error.start :]
                    break
                text += readable(self.pending[error.start : error.end])
                self.pending = self.pending[error.end :]
        return text


class _Forward:
    """Logits after the last of a growing list of ids, from a cache where the model has one."""

    def __init__(self, lm) -> None:
        self.lm = lm
        accepted = inspect.signature(inspect.unwrap(type(lm.model).forward)).parameters
        self._cached = "cache" in accepted  # GPT-1's class keeps none
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._cache: DynamicCache | None = None
        self._start = self._seen = 0

    def __call__(self, ids: Sequence[int], start: int) -> torch.Tensor:
        """(V,) float32 on the CPU: the prediction after ids[start:]."""
        if self._cache is None or start != self._start or not self._cached:
            self._cache = DynamicCache(config=self.lm.model.config) if self._cached else None
            self._start = self._seen = start
        new = torch.tensor([ids[self._seen :]], device=self.lm.device)  # (1, T)
        cache = {"cache": self._cache, "use_cache": True} if self._cached else {}
        with self.lm.lock, torch.inference_mode():
            logits = self.lm.model(input_ids=new, **cache, **self._last_only).logits  # (1, 1 or T, V)
        self._seen = len(ids)
        return logits[0, -1].float().cpu()


def generate(
    lm,
    prompt_ids: Sequence[int],
    sampling: Sampling,
    max_new_tokens: int,
    *,
    continued: Sequence[int] = (),
    forced: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    on_context_limit: str = "slide",
    top: int = 10,
) -> Iterator[GenerationStep]:
    """Continue `prompt_ids` token by token; the last step says in `finish` why it is the last.

    lm                a LanguageModel (model, lock, device, spec, token_bytes, piece, bos_id, eos_id are used)
    max_new_tokens    counts the continuation, `continued` included
    continued         new tokens already there: go on after them with the luck of the same seed
    forced            take this token first, whatever its probability
    should_stop       asked before each forward pass; True ends the continuation
    on_context_limit  "slide": drop the older half of the window and read the rest again;
                      "error": a prompt that does not fit raises, a continuation that fills the window ends
    top               candidates kept per step, before and after the knobs

    Raises ValueError at once, before any forward pass, for a request that cannot be met.
    """
    ids = [int(i) for i in prompt_ids]
    if not ids:
        first = lm.bos_id if lm.bos_id is not None else lm.eos_id
        if first is None:
            raise ValueError("The prompt is empty and this model has no start token: type at least one word.")
        ids = [first]
    n_ctx, vocab_size = lm.spec.n_ctx, lm.spec.vocab_size
    if isinstance(max_new_tokens, bool) or not isinstance(max_new_tokens, int) or max_new_tokens < 1:
        raise ValueError(f"max_new_tokens is {max_new_tokens!r}; it must be a whole number, 1 or more.")
    if on_context_limit not in ("slide", "error"):
        raise ValueError(f'on_context_limit is {on_context_limit!r}; it must be "slide" or "error".')
    if forced is not None and not 0 <= forced < vocab_size:
        raise ValueError(f"The forced token is {forced}; this model's tokens go from 0 to {vocab_size - 1}.")
    if on_context_limit == "error" and len(ids) + len(continued) > n_ctx:
        raise ValueError(
            f"The prompt has {len(ids) + len(continued)} tokens and the model reads at most {n_ctx}; "
            "shorten it or let the window slide."
        )
    return _steps(
        lm,
        ids,
        sampling,
        max_new_tokens,
        [int(i) for i in continued],
        forced,
        should_stop,
        on_context_limit,
        top,
    )


def _steps(lm, ids, sampling, max_new_tokens, continued, forced, should_stop, on_context_limit, top):
    n_ctx = lm.spec.n_ctx
    stream = TextStream()
    for token in continued:
        stream.feed(lm.token_bytes(token))
    ids = ids + continued
    start = max(0, len(ids) - n_ctx)
    forward = _Forward(lm)
    generator = generator_at(sampling.seed, len(continued))
    for index in range(len(continued), max_new_tokens):
        if should_stop is not None and should_stop():
            return
        if len(ids) - start > n_ctx:
            start = len(ids) - max(1, n_ctx // 2)
        staged = StagedDistribution(forward(ids, start), sampling, ids)
        drawn = staged.draw(generator)
        token = drawn if forced is None else forced
        ids.append(token)
        finish = ""
        if token == lm.eos_id:
            finish = "end_of_text"
        elif index + 1 == max_new_tokens:
            finish = "length"
        elif on_context_limit == "error" and len(ids) > n_ctx:
            finish = "context"
        yield _step(lm, index, token, staged, stream, forced is not None, start, finish, top)
        if finish:
            return
        forced = None


def _step(lm, index, token, staged: StagedDistribution, stream, forced, start, finish, top) -> GenerationStep:
    shown = staged.top(top, also=(token,))
    table = staged.probabilities(shown).tolist()
    rows = zip(shown, staged.logits(shown), table, strict=True)
    candidates = tuple(Candidate(i, lm.piece(i), z, tuple(p)) for i, z, p in rows)
    chosen = candidates[shown.index(token)]
    return GenerationStep(
        index=index,
        token_id=token,
        piece=chosen.piece,
        delta="" if finish == "end_of_text" else stream.feed(lm.token_bytes(token)),
        probability=chosen.probability,
        raw_probability=chosen.raw_probability,
        rank=staged.rank(token),
        surprisal=staged.surprisal(token),
        entropy=staged.raw_entropy,
        candidates=candidates,
        stages=staged.summaries(),
        forced=forced,
        context_start=start,
        finish=finish,
    )
