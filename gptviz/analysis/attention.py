"""Statistics of attention maps: entropy, distance, sinks, previous-token and induction scores, rollout.

Pure: takes arrays, knows nothing of models. Imported by gptviz.models (it imports only torch).
Sources: attention sinks, Xiao et al. (2023); induction heads, Olsson et al. (2022);
rollout, Abnar and Zuidema (2020), Section 3.
"""

from __future__ import annotations

import torch


def induction_targets(ids: torch.Tensor) -> torch.Tensor:
    """(T, T) bool: [i, j] is true where token j - 1 is an earlier copy of token i, so j is what followed it."""
    same = ids[:, None] == ids[None, :]  # (T, T): same[i, j]
    target = torch.zeros_like(same)
    target[:, 1:] = same[:, :-1]
    return target & torch.ones_like(target).tril()  # j <= i: the copy lies before, j is already seen


def layer_statistics(weights: torch.Tensor, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """Per head of one layer, each (H,): entropy (nats), distance (tokens), first, previous, induction.

    weights: (H, T, T) causal, rows sum to 1; ids: (T,). A query with no earlier copy of itself is left
    out of the induction score, and the first token out of the previous-token score; NaN where none remain.
    """
    n_head, n, _ = weights.shape
    entropy = torch.special.entr(weights).sum(-1).mean(-1)
    i = torch.arange(n, device=weights.device)
    lag = (i[:, None] - i[None, :]).clamp(min=0).to(weights.dtype)
    distance = (weights * lag).sum(-1).mean(-1)
    first = weights[:, :, 0].mean(-1)
    nan = torch.full((n_head,), float("nan"), device=weights.device)
    previous = weights.diagonal(offset=-1, dim1=1, dim2=2).mean(-1) if n > 1 else nan
    targets = induction_targets(ids)
    rows = targets.any(-1)
    induction = (weights * targets).sum(-1)[:, rows].mean(-1) if bool(rows.any()) else nan
    return {"entropy": entropy, "distance": distance, "first": first, "previous": previous, "induction": induction}


def thumbnail(weights: torch.Tensor, size: int = 24) -> torch.Tensor:
    """(H, s, s) uint8 with s = min(T, size): each cell the largest weight under it, each head's maximum at 255.

    The largest weight, not the mean: a single strong diagonal would vanish in a mean.
    """
    small = torch.nn.functional.adaptive_max_pool2d(weights[None], min(size, weights.shape[-1]))[0]
    top = small.amax((1, 2), keepdim=True).clamp(min=1e-9)
    return (small / top * 255).round().to(torch.uint8)


def rollout_step(previous: torch.Tensor | None, weights: torch.Tensor) -> torch.Tensor:
    """One layer of attention rollout: (mean over heads + identity) / 2, multiplied onto the layers below. (T, T)."""
    mixed = (weights.mean(0) + torch.eye(weights.shape[-1], device=weights.device, dtype=weights.dtype)) / 2
    return mixed if previous is None else mixed @ previous
