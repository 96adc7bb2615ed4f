"""What a pre-training run is: one frozen record, and the named ones that ship.

Knows nothing about torch. Recipe after GPT-1, Section 4.1 (AdamW, linear warm-up, cosine to zero).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gptviz.training.tokenizer_training import KINDS, SMALLEST_BPE, TokenizerKind

Architecture = Literal["gpt2", "gpt1", "lstm"]
ARCHITECTURES: tuple[Architecture, ...] = ("gpt2", "gpt1", "lstm")
DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True)
class PretrainConfig:
    """One pre-training run. Raises ValueError where a value cannot work."""

    corpus: str = ""
    """Folder of .txt or .txt.gz files, with train/ and valid/ or without (then a tenth of each text is held out)."""
    tokenizer: TokenizerKind = "bpe"
    vocab_size: int = 8192
    """Tokens of the BPE; bytes and characters count their own."""
    architecture: Architecture = "gpt2"
    """Block order: "gpt2" normalises before each sub-layer, "gpt1" after; "lstm" is the twin of equal size."""
    n_layer: int = 6
    d_model: int = 256
    n_head: int = 4
    n_ctx: int = 512
    """Tokens of context."""
    window: int = 0
    """Tokens of a training window; 0 for the whole context. Only an LSTM, which has no positions, may train on less."""
    dropout: float = 0.0
    batch_size: int = 4
    """Windows a step."""
    n_steps: int = 1000
    learning_rate: float = 1e-3
    """At its peak, after the warm-up."""
    warmup_steps: int = 100
    weight_decay: float = 0.1
    """On matrices only."""
    beta1: float = 0.9
    beta2: float = 0.98
    grad_clip: float = 1.0
    """Largest norm of the whole gradient."""
    seed: int = 0
    device: str = "cpu"
    """"auto", "cpu", "cuda", "cuda:1", "mps"."""
    dtype: str = "float32"
    """"float32", or "bfloat16" for matrix products under autocast (weights and optimiser stay float32)."""
    compile: bool = False
    """Translate the model with torch.compile; needs a C++ compiler on a CPU."""
    log_every: int = 10
    valid_every: int = 200
    """Steps between validations; 0 for the last step only."""
    valid_windows: int = 64
    """Windows of a validation along the way; they are spread over the held-out text and always the same."""
    checkpoint_steps: tuple[int, ...] = ()
    """Steps whose weights are kept in float16, for figures over the course of training."""
    save_every: int = 100
    """Steps between the states from which a stopped run goes on; 0 for the last step only."""
    sample_every: int = 0
    sample_prompt: str = ""
    sample_tokens: int = 60

    def __post_init__(self) -> None:
        object.__setattr__(self, "checkpoint_steps", tuple(self.checkpoint_steps))
        _choice("tokenizer", self.tokenizer, KINDS)
        _choice("architecture", self.architecture, ARCHITECTURES)
        _choice("dtype", self.dtype, DTYPES)
        for name in ("n_layer", "d_model", "n_head", "batch_size", "n_steps", "log_every", "valid_windows"):
            _at_least(name, getattr(self, name), 1)
        _at_least("n_ctx", self.n_ctx, 2)
        if self.tokenizer == "bpe":
            _at_least("vocab_size", self.vocab_size, SMALLEST_BPE)
        for name in ("warmup_steps", "weight_decay", "valid_every", "save_every", "sample_every", "sample_tokens", "window"):
            _at_least(name, getattr(self, name), 0)
        if self.d_model % self.n_head:
            raise ValueError(f"d_model {self.d_model} cannot be split evenly over {self.n_head} heads.")
        if self.window and self.architecture != "lstm":
            raise ValueError(f"window is {self.window}; only an LSTM can train on windows shorter than its context.")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; it must be at least 0 and below 1.")
        if self.learning_rate <= 0 or self.grad_clip <= 0:
            raise ValueError(
                f"learning_rate ({self.learning_rate}) and grad_clip ({self.grad_clip}) must be above 0."
            )

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> PretrainConfig:
        """The config that `dataclasses.asdict` wrote. Raises ValueError for a field that does not exist."""
        unknown = set(values) - set(cls.__dataclass_fields__)
        if unknown:
            raise ValueError(f"A pre-training config has no field {', '.join(map(repr, sorted(unknown)))}.")
        return cls(**values)

    @property
    def tokens_per_step(self) -> int:
        """Predicted tokens in one step."""
        return self.batch_size * self.window_length

    @property
    def window_length(self) -> int:
        """Predicted tokens of one training window."""
        return self.window or self.n_ctx


def _choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} is {value!r}; choose one of {', '.join(known)}.")


def _at_least(name: str, value: float, least: float) -> None:
    if value < least:
        raise ValueError(f"{name} is {value}; it must be at least {least}.")
