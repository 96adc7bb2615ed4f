"""Decoding that compares continuations: beam search with its whole tree, contrastive search with both scores.

What it is: beam search with the bookkeeping of Hugging Face's `generate` (early_stopping=False), one batched
forward pass a step; contrastive search by the formula of its paper. Greedy decoding is sampling at
temperature 0 (`gptviz.models.generation`).
What it does not know: sampling knobs, pages.

Sources: contrastive search, Su et al. 2022 (arXiv:2202.06417), Eq. 5; length penalty, Wu et al. 2016.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence

import torch
from transformers import DynamicCache

from gptviz.models.generation import TextStream
from gptviz.types.decoding import BeamNode, BeamTree, ContrastiveCandidate, ContrastiveStep, Hypothesis

MAX_WIDTH = 50
"""Most beams or contrastive candidates: each is a row of one batched forward pass."""


def _check(lm, prompt: str, width: int, name: str, max_new_tokens: int) -> list[int]:
    """The prompt's ids, or ValueError for a request that cannot be met."""
    ids = list(lm.encode(prompt)) or [i for i in (lm.bos_id, lm.eos_id) if i is not None][:1]
    if not ids:
        raise ValueError("The prompt is empty and this model has no start token: type at least one word.")
    if isinstance(width, bool) or not isinstance(width, int) or not 1 <= width <= MAX_WIDTH:
        raise ValueError(f"{name} is {width!r}; it must be a whole number from 1 to {MAX_WIDTH}.")
    room = lm.spec.n_ctx - len(ids)
    if (
        isinstance(max_new_tokens, bool)
        or not isinstance(max_new_tokens, int)
        or not 1 <= max_new_tokens <= room
    ):
        raise ValueError(
            f"max_new_tokens is {max_new_tokens!r}; the prompt has {len(ids)} tokens and the model reads "
            f"{lm.spec.n_ctx}, so it must be a whole number from 1 to {max(room, 0)}."
        )
    return ids


class _Rows:
    """A batch of equally long sequences, extended one token at a time through one cache."""

    def __init__(self, lm, ids: Sequence[int], hidden: bool = False) -> None:
        self.lm, self.hidden = lm, hidden
        accepted = inspect.signature(inspect.unwrap(type(lm.model).forward)).parameters
        self.ids = torch.tensor([list(ids)], device=lm.device)  # (B, T)
        self.cache = DynamicCache(config=lm.model.config) if "cache" in accepted else None
        self.states: torch.Tensor | None = None  # (B, T, D) last-layer states, when `hidden`
        self._seen = 0

    @torch.inference_mode()
    def forward(self) -> torch.Tensor:
        """(B, V) log-probabilities of the next token, float32 on the CPU."""
        new = self.ids[:, self._seen :] if self.cache is not None else self.ids
        extra = {"cache": self.cache, "use_cache": True} if self.cache is not None else {}
        with self.lm.lock:
            out = self.lm.model(input_ids=new, output_hidden_states=self.hidden, **extra)
        if self.hidden:
            last = out.hidden_states[-1].float()
            whole = self.states is None or self.cache is None
            self.states = last if whole else torch.cat([self.states, last], dim=1)
        self._seen = self.ids.shape[1]
        return torch.log_softmax(out.logits[:, -1].float(), dim=-1).cpu()

    @torch.inference_mode()
    def extend(self, rows: Sequence[int], tokens: Sequence[int]) -> None:
        """Go on with these rows (one may be taken more than once), each with its token appended."""
        keep = torch.tensor(list(rows), device=self.ids.device)
        last = torch.tensor(list(tokens), device=self.ids.device)[:, None]
        self.ids = torch.cat([self.ids[keep], last], dim=1)
        self.select_cache(keep)

    @torch.inference_mode()
    def select(self, row: int) -> None:
        """Go on with one row alone."""
        keep = torch.tensor([row], device=self.ids.device)
        self.ids = self.ids[keep]
        self.select_cache(keep)

    def select_cache(self, keep: torch.Tensor) -> None:
        if self.states is not None:
            self.states = self.states[keep]
        if self.cache is not None and self._seen:
            self.cache.batch_select_indices(keep)


def beam_steps(
    lm,
    prompt: str,
    n_beams: int = 3,
    max_new_tokens: int = 20,
    length_penalty: float = 1.0,
    should_stop: Callable[[], bool] | None = None,
) -> Iterator[BeamTree]:
    """Beam search, yielding the tree after every step; the last has `done` set.

    Each step keeps the n_beams best unfinished continuations of the 2 * n_beams best. A continuation that
    ends counts as finished when it is among the n_beams best. The search ends when no open beam can beat the
    worst finished one at the present length, or at max_new_tokens.
    Raises ValueError for n_beams outside 1 to 50 or a continuation that does not fit the context.
    """
    ids = _check(lm, prompt, n_beams, "n_beams", max_new_tokens)
    if not isinstance(length_penalty, (int, float)) or not -10 <= length_penalty <= 10:
        raise ValueError(f"length_penalty is {length_penalty!r}; it must be a number from -10 to 10.")
    return _beam_steps(lm, ids, n_beams, max_new_tokens, float(length_penalty), should_stop)


def _beam_steps(lm, ids, n_beams, max_new_tokens, length_penalty, should_stop) -> Iterator[BeamTree]:
    rows = _Rows(lm, ids)
    nodes: list[BeamNode] = []
    finished: list[Hypothesis] = []
    open_nodes, open_scores = [-1], torch.zeros(1)
    for step in range(max_new_tokens):
        if should_stop is not None and should_stop():
            return
        log_p = rows.forward()  # (B, V)
        vocab_size = log_p.shape[1]
        total = (log_p + open_scores[:, None]).reshape(-1)
        best = torch.topk(total, min(2 * n_beams, total.numel()))
        last = step + 1 == max_new_tokens
        kept: list[tuple[int, int, int]] = []  # row, token, node
        for place, (flat, score) in enumerate(zip(best.indices.tolist(), best.values.tolist(), strict=True)):
            row, token = divmod(flat, vocab_size)
            ends = last or token == lm.eos_id
            if ends:
                state = "finished" if place < n_beams else "dropped"
            else:
                state = "kept" if len(kept) < n_beams else "dropped"
            node = BeamNode(
                len(nodes),
                open_nodes[row],
                step,
                token,
                lm.piece(token),
                float(log_p[row, token]),
                score,
                state,
            )
            nodes.append(node)
            if state == "kept":
                kept.append((row, token, node.id))
            elif state == "finished":
                finished.append(_hypothesis(lm, nodes, node, length_penalty))
        finished = sorted(finished, key=lambda h: -h.score)[:n_beams]
        if not last:
            open_nodes = [node for _, _, node in kept]
            open_scores = torch.tensor([nodes[i].score for i in open_nodes])
            hopeful = len(finished) < n_beams
            hopeful = (
                hopeful or nodes[open_nodes[0]].score / (step + 1) ** length_penalty > finished[-1].score
            )
            last = not hopeful
        yield BeamTree(n_beams, length_penalty, tuple(nodes), tuple(finished), last)
        if last:
            return
        rows.extend([row for row, _, _ in kept], [token for _, token, _ in kept])


def _hypothesis(lm, nodes: list[BeamNode], node: BeamNode, length_penalty: float) -> Hypothesis:
    path, at = [node], node
    while at.parent >= 0:
        at = nodes[at.parent]
        path.append(at)
    ids = tuple(n.token_id for n in reversed(path))
    stream = TextStream()
    text = "".join(stream.feed(lm.token_bytes(i)) for i in ids if i != lm.eos_id)
    return Hypothesis(ids, text, node.score, node.score / len(ids) ** length_penalty, node.id)


def beam_search(
    lm, prompt: str, n_beams: int = 3, max_new_tokens: int = 20, length_penalty: float = 1.0
) -> BeamTree:
    """The whole tree of `beam_steps`; `.finished[0]` is the answer."""
    *_, tree = beam_steps(lm, prompt, n_beams, max_new_tokens, length_penalty)
    return tree


def contrastive_search(
    lm,
    prompt: str,
    alpha: float = 0.6,
    top_k: int = 4,
    max_new_tokens: int = 40,
    should_stop: Callable[[], bool] | None = None,
) -> Iterator[ContrastiveStep]:
    """Of the top_k most probable tokens take the one with the best (1 - alpha) P - alpha max cosine.

    The cosine is between the candidate's last-layer state, read by one batched forward pass over the
    candidates, and the states of all tokens before it, prompt included. alpha 0 is greedy.
    Raises ValueError for alpha outside 0 to 1, top_k outside 1 to 50 or a text that does not fit the context.
    """
    ids = _check(lm, prompt, top_k, "top_k", max_new_tokens)
    if not isinstance(alpha, (int, float)) or not 0 <= alpha <= 1:
        raise ValueError(f"alpha is {alpha!r}; it must be a number from 0 to 1.")
    return _contrastive(lm, ids, float(alpha), top_k, max_new_tokens, should_stop)


def _contrastive(lm, ids, alpha, top_k, max_new_tokens, should_stop) -> Iterator[ContrastiveStep]:
    stream = TextStream()
    rows = _Rows(lm, ids, hidden=True)
    log_p = rows.forward()[0]  # (V,)
    for index in range(max_new_tokens):
        if should_stop is not None and should_stop():
            return
        best = torch.topk(log_p, min(top_k, log_p.numel()))
        tokens, p = best.indices.tolist(), best.values.exp()  # (K,)
        rows.extend([0] * len(tokens), tokens)
        following = rows.forward()  # (K, V)
        states = torch.nn.functional.normalize(rows.states, dim=-1)  # (K, T + 1, D)
        cosine = (states[:, :-1] @ states[:, -1:].transpose(1, 2)).squeeze(-1).cpu()  # (K, T)
        similarity, nearest = cosine.max(dim=1)
        score = (1 - alpha) * p - alpha * similarity
        chosen = int(score.argmax())
        table = zip(tokens, p.tolist(), similarity.tolist(), score.tolist(), nearest.tolist(), strict=True)
        candidates = tuple(ContrastiveCandidate(i, lm.piece(i), *numbers) for i, *numbers in table)
        token = tokens[chosen]
        ends = token == lm.eos_id
        finish = "end_of_text" if ends else "length" if index + 1 == max_new_tokens else ""
        delta = "" if ends else stream.feed(lm.token_bytes(token))
        yield ContrastiveStep(index, token, lm.piece(token), delta, candidates, finish)
        if finish:
            return
        rows.select(chosen)
        log_p = following[chosen]
