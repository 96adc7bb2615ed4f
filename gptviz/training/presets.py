"""The pre-training runs that ship, by name.

`books-tiny` is the model the app opens with; `books-tiny-lstm` its twin of equal size: as many tokens in as many steps
at the same learning rates, in windows of 128, since gradients through 512 recurrent steps cost four times the time.
Knows nothing about torch.
"""

from __future__ import annotations

from dataclasses import replace

from gptviz.training.pretrain_config import PretrainConfig

_STEPS = 4400
_BOOKS_TINY = PretrainConfig(
    tokenizer="bpe",
    vocab_size=8192,
    architecture="gpt2",
    n_layer=6,
    d_model=256,
    n_head=4,  # heads of 64, as in both papers
    n_ctx=512,
    batch_size=4,
    n_steps=_STEPS,
    learning_rate=1.5e-3,
    warmup_steps=150,
    weight_decay=0.1,
    beta2=0.98,
    seed=1,
    dtype="bfloat16",
    compile=True,
    valid_every=200,
    save_every=50,
    checkpoint_steps=(0, 50, 100, 200, 400, 800, 1200, 1600, 2200, 2800, 3400, _STEPS),
    sample_every=400,
    sample_prompt="The old man opened the door and",
)

PRESETS: dict[str, PretrainConfig] = {
    "books-tiny": _BOOKS_TINY,
    "books-tiny-lstm": replace(_BOOKS_TINY, architecture="lstm", window=128, batch_size=16, compile=False),
}


def preset(name: str) -> PretrainConfig:
    """The named run. Raises ValueError for a name that is not there."""
    if name not in PRESETS:
        raise ValueError(f"There is no preset {name!r}; choose one of {', '.join(PRESETS)}.")
    return PRESETS[name]
