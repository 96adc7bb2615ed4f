"""From logits to the distribution a token is drawn from, one knob at a time.

What it is: the stages repetition penalty, temperature, top-k, top-p, min-p, typical, in the order and with
the arithmetic of Hugging Face's logits processors (tests/parity/test_sampling_parity.py holds them equal),
and a draw that a seed fixes on every machine. After the first cut only the survivors are carried on, so a
step over 50,000 tokens costs little more than its softmax.
What it does not know: models, tokenizers, text.

Sources: temperature, Ackley et al. 1985; top-k, Fan et al. 2018 (and GPT-2, Section 3.6 and Appendix A);
top-p, Holtzman et al. 2020; min-p, Nguyen et al. 2024; typical, Meister et al. 2023; repetition penalty,
Keskar et al. 2019 (CTRL), Section 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from gptviz.types.sampling import STAGE_NAMES, Sampling, Stage, StageSummary


@dataclass(frozen=True, eq=False)
class _View:
    """The distribution after one stage: scores and log-probabilities of the survivors, ids ascending."""

    ids: torch.Tensor | None  # (n,) int64, or None for the whole vocabulary
    scores: torch.Tensor  # (n,) float32
    log_p: torch.Tensor  # (n,) float32
    p: torch.Tensor  # (n,) float32
    entropy: float
    mass_cut: float

    @staticmethod
    def of(scores: torch.Tensor, ids: torch.Tensor | None = None, mass_cut: float = 0.0) -> _View:
        log_p = torch.log_softmax(scores, dim=0)
        p = log_p.exp()
        entropy = -float(torch.dot(p, log_p))
        if math.isnan(entropy):  # 0 * -inf where a logit is -inf: those terms count as 0
            entropy = -float((p * log_p).nansum())
        return _View(ids, scores, log_p, p, max(0.0, entropy), mass_cut)

    def keep(self, mask: torch.Tensor) -> _View:
        """The view cut to `mask` (n,) bool; the survivors share out the mass that was cut."""
        kept = mask.nonzero().squeeze(1)  # (m,)
        if kept.numel() == mask.numel():
            return self
        ids = kept if self.ids is None else self.ids[kept]
        return _View.of(self.scores[kept], ids, float(self.p[~mask].sum()))

    def at(self, ids: torch.Tensor) -> torch.Tensor:
        """Probabilities of `ids` (m,), 0 where cut."""
        if self.ids is None:
            return self.p[ids]
        place = torch.searchsorted(self.ids, ids).clamp_(max=self.ids.numel() - 1)
        return torch.where(self.ids[place] == ids, self.p[place], 0.0)


def _repetition_penalty(scores: torch.Tensor, penalty: float, previous_ids: Sequence[int]) -> torch.Tensor:
    """Divide positive and multiply negative scores of tokens already present, once per token. (V,) -> (V,)"""
    seen = torch.tensor(sorted({i for i in previous_ids if 0 <= i < scores.numel()}), dtype=torch.long)
    seen = seen.to(scores.device)
    chosen = scores[seen]
    scores = scores.clone()
    scores[seen] = torch.where(chosen < 0, chosen * penalty, chosen / penalty)
    return scores


def _top_k(view: _View, k: int) -> torch.Tensor:
    kth = torch.topk(view.scores, min(k, view.scores.numel())).values[-1]
    return view.scores >= kth


def _top_p(view: _View, top_p: float, vocab_size: int) -> torch.Tensor:
    ascending, order = torch.sort(view.scores)
    cumulative = ascending.softmax(dim=0).cumsum(dim=0)
    drop = cumulative <= (1 - top_p)
    drop[-1] = False
    n = int(drop.sum())
    if view.ids is not None and n and ascending[n - 1] == ascending[n]:
        # The cut falls among equal scores, where Hugging Face keeps whichever its sort of all V puts last.
        whole = torch.full((vocab_size,), -torch.inf, device=view.scores.device)
        whole[view.ids] = view.scores
        return _top_p(_View.of(whole), top_p, vocab_size)[view.ids]
    return ~torch.zeros_like(drop).scatter_(0, order, drop)


def _min_p(view: _View, min_p: float) -> torch.Tensor:
    p = view.scores.softmax(dim=0)
    keep = p >= min_p * p.max()
    keep[p.argmax()] = True
    return keep


def _typical(view: _View, mass: float) -> torch.Tensor:
    entropy = -(view.log_p * view.p).nansum()
    distance, order = torch.sort(torch.abs(-view.log_p - entropy))
    cumulative = view.scores[order].softmax(dim=0).cumsum(dim=0)
    last = (cumulative < mass).sum().clamp_(max=distance.numel() - 1)
    drop = distance > distance[last]
    drop[0] = False
    return ~torch.zeros_like(drop).scatter_(0, order, drop)


class StagedDistribution:
    """The next-token distribution after each of STAGE_NAMES, expanded to (V,) arrays only when asked.

    logits        (V,), any float dtype, any device
    previous_ids  prompt and continuation so far: what the repetition penalty looks at
    Raises ValueError when the logits are not a vector or hold NaN or +inf.
    """

    def __init__(self, logits: torch.Tensor, sampling: Sampling, previous_ids: Sequence[int] = ()) -> None:
        if logits.dim() != 1 or logits.numel() == 0:
            raise ValueError(f"The logits have shape {tuple(logits.shape)}; one vector (V,) is needed.")
        self.sampling = sampling
        self.vocab_size = logits.numel()
        view = _View.of(logits.detach().float())
        if not torch.isfinite(view.scores.max()):  # the maximum is NaN where any logit is
            raise ValueError("The model's logits hold NaN or infinity, so no token can be drawn from them.")
        views = [view]
        for name in STAGE_NAMES[1:]:
            if sampling.active(name):
                view = self._apply(name, view, previous_ids)
            views.append(view)
        self._views: tuple[_View, ...] = tuple(views)

    def _apply(self, name: str, view: _View, previous_ids: Sequence[int]) -> _View:
        sampling = self.sampling
        if name == "repetition_penalty":
            penalty = sampling.repetition_penalty
            return _View.of(_repetition_penalty(view.scores, penalty, previous_ids))
        if name == "temperature":
            if sampling.greedy:
                best = torch.zeros_like(view.scores, dtype=torch.bool)
                best[view.scores.argmax()] = True
                return view.keep(best)
            return _View.of(view.scores / sampling.temperature)
        if name == "top_k":
            return view.keep(_top_k(view, sampling.top_k))
        if name == "top_p":
            return view.keep(_top_p(view, sampling.top_p, self.vocab_size))
        if name == "min_p":
            return view.keep(_min_p(view, sampling.min_p))
        return view.keep(_typical(view, sampling.typical_p))

    def draw(self, generator: np.random.Generator) -> int:
        """One token id from the final distribution; takes exactly one number from `generator`."""
        final = self._views[-1]
        place = draw(final.p.cpu().numpy(), generator)
        return place if final.ids is None else int(final.ids[place])

    def rank(self, token_id: int) -> int:
        """1 for the model's most probable token; ties share the better rank."""
        scores = self._views[0].scores.cpu().numpy()
        return 1 + int(np.count_nonzero(scores > scores[token_id]))

    def surprisal(self, token_id: int) -> float:
        """-ln of the model's raw probability, nats; exact where the probability itself rounds to 0."""
        return -float(self._views[0].log_p[token_id])

    def top(self, n: int, also: Sequence[int] = ()) -> list[int]:
        """The n most probable ids before and after all stages, and `also`, most probable (raw) first."""
        raw, final = self._views[0], self._views[-1]
        best = torch.topk(raw.scores, min(n, raw.scores.numel())).indices.tolist()
        after = torch.topk(final.scores, min(n, final.scores.numel())).indices
        after = (after if final.ids is None else final.ids[after]).tolist()
        known = set(best)
        rest = {i for i in (*after, *also) if i not in known}
        return best + sorted(rest, key=lambda i: (-float(raw.scores[i]), i))

    def probabilities(self, ids: Sequence[int]) -> np.ndarray:
        """(len(ids), len(STAGE_NAMES)) float32: each id's probability after each stage."""
        wanted = torch.tensor(list(ids), dtype=torch.long, device=self._views[0].scores.device)
        columns: list[torch.Tensor] = []
        for i, view in enumerate(self._views):
            same = i > 0 and view is self._views[i - 1]
            columns.append(columns[-1] if same else view.at(wanted))
        return torch.stack(columns, dim=1).cpu().numpy()

    def logits(self, ids: Sequence[int]) -> list[float]:
        """The model's raw scores of `ids`."""
        return self._views[0].scores[torch.tensor(list(ids), dtype=torch.long)].tolist()

    @property
    def raw_entropy(self) -> float:
        """Nats, before any knob."""
        return self._views[0].entropy

    def summaries(self) -> tuple[StageSummary, ...]:
        """One summary for each of STAGE_NAMES."""
        made, before = [], None
        for name, view in zip(STAGE_NAMES, self._views, strict=True):
            n = self.vocab_size if view.ids is None else view.ids.numel()
            cut = 0.0 if view is before else view.mass_cut
            active = self.sampling.active(name)
            made.append(StageSummary(name, self.sampling.setting(name), active, n, cut, view.entropy))
            before = view
        return tuple(made)

    def expand(self) -> tuple[Stage, ...]:
        """One `Stage` with (V,) arrays for each of STAGE_NAMES; stages that change nothing share arrays."""
        made: list[Stage] = []
        for i, (view, summary) in enumerate(zip(self._views, self.summaries(), strict=True)):
            if i and view is self._views[i - 1]:
                p, survivors = made[-1].probabilities, made[-1].survivors
            elif view.ids is None:
                p, survivors = view.p.cpu().numpy(), np.ones(self.vocab_size, dtype=bool)
            else:
                ids = view.ids.cpu().numpy()
                p, survivors = np.zeros(self.vocab_size, np.float32), np.zeros(self.vocab_size, bool)
                p[ids], survivors[ids] = view.p.cpu().numpy(), True
            p.setflags(write=False)
            survivors.setflags(write=False)
            made.append(Stage(**vars(summary), probabilities=p, survivors=survivors))
        return tuple(made)


def stages(logits: torch.Tensor, sampling: Sampling, previous_ids: Sequence[int] = ()) -> tuple[Stage, ...]:
    """Every stage from the raw to the final next-token distribution, in Hugging Face's order.

    logits (V,); previous_ids: the tokens so far. Raises ValueError for logits that are no vector or hold NaN.

    >>> [s.n_survivors for s in stages(torch.tensor([2.0, 1.0, 0.0]), Sampling(top_k=2))]
    [3, 3, 3, 2, 2, 2, 2]
    """
    return StagedDistribution(logits, sampling, previous_ids).expand()


def draw(probabilities: np.ndarray, generator: np.random.Generator) -> int:
    """An index drawn with `probabilities` (n,), by inverting their cumulative sum in float64.

    Takes exactly one number from the generator, so step i of a seed is the i-th number whatever was drawn
    before: settings compared side by side see the same luck, and a branch goes on where the record stopped.
    """
    cumulative = np.cumsum(probabilities, dtype=np.float64)
    place = int(np.searchsorted(cumulative, generator.random() * cumulative[-1], side="right"))
    while place >= cumulative.size or probabilities[place] == 0:  # rounding at the upper end
        place -= 1
    return place


def generator_at(seed: int, step: int) -> np.random.Generator:
    """The generator of `seed` as it stands before step `step`.

    >>> bool(generator_at(3, 1).random() == generator_at(3, 0).random(2)[1])
    True
    """
    bits = np.random.PCG64(seed)
    bits.advance(step)
    return np.random.Generator(bits)
