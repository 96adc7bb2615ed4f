"""The three tokenizers: what is encoded comes back, and transformers loads what is saved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from gptviz.training.tokenizer_training import END_OF_TEXT, KINDS, save_tokenizer, token_bytes, train_tokenizer

TEXT = "The mill stood by the river.\n\nThe miller's cat sat on the mill\N{EM DASH}and slept. \U0001f408"


@pytest.mark.parametrize("kind", KINDS)
def test_text_survives_and_bytes_add_up(kind, tmp_path):
    tokenizer = train_tokenizer(kind, [TEXT], 300)
    ids = tokenizer.encode(TEXT).ids
    assert tokenizer.decode(ids) == TEXT
    assert token_bytes(tokenizer)[ids].sum() == len(TEXT.encode())
    assert tokenizer.token_to_id(END_OF_TEXT) == 0
    save_tokenizer(tokenizer, tmp_path, 64)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded(TEXT)["input_ids"] == ids
    assert loaded.decode(ids) == TEXT
    assert (loaded.bos_token_id, loaded.eos_token_id, loaded.model_max_length) == (0, 0, 64)


@given(st.text(max_size=60))
def test_bytes_and_bpe_lose_nothing(text):
    for kind in ("bytes", "bpe"):
        tokenizer = train_tokenizer(kind, [TEXT], 280)
        text = text.encode("utf-8", "ignore").decode()
        ids = tokenizer.encode(text.replace(END_OF_TEXT, "")).ids
        assert tokenizer.decode(ids) == text.replace(END_OF_TEXT, "")


def test_sizes():
    assert train_tokenizer("bytes", [TEXT]).get_vocab_size() == 257
    assert train_tokenizer("bpe", [TEXT * 3], 290).get_vocab_size() == 290
    assert train_tokenizer("characters", ["abca"]).get_vocab_size() == 5


def test_a_character_never_seen_becomes_unknown():
    tokenizer = train_tokenizer("characters", ["abc"])
    assert tokenizer.encode("abz").ids == [2, 3, 1]


@pytest.mark.parametrize(
    ("kind", "size", "said"), [("words", 300, "'words' is not known"), ("bpe", 256, "at least 257 tokens, not 256")]
)
def test_mistakes(kind, size, said):
    with pytest.raises(ValueError, match=said):
        train_tokenizer(kind, [TEXT], size)
