"""Learn a tokenizer from texts: byte-level BPE as GPT-2's, plain bytes, or characters.

All three are `tokenizers` pipelines, so that transformers' AutoTokenizer loads what is saved. GPT-2, Section 2.2, is
the source of the byte-level BPE (its regular expression and its byte alphabet). Knows nothing about models.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np

TokenizerKind = Literal["bpe", "bytes", "characters"]
KINDS: tuple[TokenizerKind, ...] = ("bpe", "bytes", "characters")
END_OF_TEXT = "<|endoftext|>"
UNKNOWN = "<|unknown|>"
SMALLEST_BPE = 257
"""256 bytes and the end-of-text token: a byte-level BPE cannot have a smaller vocabulary."""


def train_tokenizer(kind: TokenizerKind, texts: Iterable[str], vocab_size: int = 8192):
    """A `tokenizers.Tokenizer` learned from `texts`; id 0 is the end-of-text token.

    `vocab_size` counts for "bpe" only: "bytes" has 257 tokens, "characters" one for each character seen, and one for
    those never seen. Raises ValueError for an unknown kind or a vocabulary below 257.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    if kind not in KINDS:
        raise ValueError(f"The tokenizer {kind!r} is not known; choose one of {', '.join(KINDS)}.")
    if kind == "characters":
        characters = sorted(set().union(*map(set, texts)))
        names = [END_OF_TEXT, UNKNOWN, *characters]
        model = models.WordLevel({name: i for i, name in enumerate(names)}, unk_token=UNKNOWN)
        tokenizer = Tokenizer(model)
        tokenizer.pre_tokenizer = pre_tokenizers.Split(_any_character(), behavior="isolated")
        tokenizer.decoder = decoders.Fuse()
        tokenizer.add_special_tokens([END_OF_TEXT, UNKNOWN])
        return tokenizer
    if kind == "bpe" and vocab_size < SMALLEST_BPE:
        raise ValueError(f"A byte-level BPE needs a vocabulary of at least {SMALLEST_BPE} tokens, not {vocab_size}.")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size if kind == "bpe" else SMALLEST_BPE,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts if kind == "bpe" else (), trainer)
    return tokenizer


def _any_character():
    from tokenizers import Regex

    return Regex(r"[\s\S]")


def save_tokenizer(tokenizer, folder: Path, n_ctx: int) -> None:
    """Write `tokenizer` into `folder` as transformers' AutoTokenizer expects it."""
    from transformers import PreTrainedTokenizerFast

    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=END_OF_TEXT,
        eos_token=END_OF_TEXT,
        unk_token=UNKNOWN if tokenizer.token_to_id(UNKNOWN) is not None else END_OF_TEXT,
        model_max_length=n_ctx,
        clean_up_tokenization_spaces=False,
    ).save_pretrained(folder)


def token_bytes(tokenizer) -> np.ndarray:
    """(V,) int64: the UTF-8 bytes that each token stands for; 0 for the end-of-text token.

    Perplexity per byte divides the same nats by these, so that tokenizers can be compared.
    """
    size = tokenizer.get_vocab_size()
    names = [tokenizer.id_to_token(i) for i in range(size)]
    one_character_a_byte = tokenizer.token_to_id(UNKNOWN) is None
    lengths = [len(name) if one_character_a_byte else len(name.encode()) for name in names]
    lengths[tokenizer.token_to_id(END_OF_TEXT)] = 0
    if not one_character_a_byte:
        lengths[tokenizer.token_to_id(UNKNOWN)] = 1
    return np.array(lengths, dtype=np.int64)
