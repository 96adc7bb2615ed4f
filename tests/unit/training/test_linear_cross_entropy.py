"""The sliced loss equals torch's own, value and gradients."""

import pytest
import torch

from gptviz.training.linear_cross_entropy import SLICE, linear_cross_entropy


@pytest.mark.parametrize("n", [1, SLICE, SLICE + 7])
def test_equals_torch(n):
    generator = torch.Generator().manual_seed(0)
    hidden, weight = (torch.randn(shape, generator=generator) for shape in ((n, 12), (50, 12)))
    targets = torch.randint(50, (n,), generator=generator)
    ours, theirs = ([t.clone().requires_grad_() for t in (hidden, weight)] for _ in range(2))
    loss = linear_cross_entropy(*ours, targets, torch.float32)
    expected = torch.nn.functional.cross_entropy(theirs[0] @ theirs[1].T, targets)
    (2 * loss).backward()
    (2 * expected).backward()
    torch.testing.assert_close(loss, expected)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad)
