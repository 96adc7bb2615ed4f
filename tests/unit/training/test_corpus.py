"""Windows are contiguous, of one book, and the same for the same seed."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.training.corpus import Books, WindowOrder, hold_out, read_books, tokenize_books
from gptviz.training.tokenizer_training import train_tokenizer


def make_books(lengths: list[int]) -> Books:
    """Books whose token at place i says which book it is of: 1000 * book + place."""
    tokens = [1000 * book + np.arange(length) for book, length in enumerate(lengths)]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Books(np.concatenate(tokens).astype(np.int32), starts, tuple(map(str, range(len(lengths)))))


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(2, 12), st.integers(0, 99))
def test_windows_never_cross_a_book(lengths, n_ctx, seed):
    books = make_books(lengths)
    for rng in (None, np.random.default_rng(seed)):
        starts = books.windows(n_ctx, rng)
        batch = books.batch(starts, n_ctx)
        assert batch.shape == (len(starts), n_ctx + 1)
        assert (batch // 1000 == batch[:, :1] // 1000).all(), "a window holds tokens of two books"
        assert (np.diff(batch, axis=1) == 1).all(), "a window skips a token"
        ordered = np.sort(batch[:, 0])
        same_book = np.diff(ordered // 1000) == 0
        assert (np.diff(ordered)[same_book] == n_ctx).all(), "windows of one book overlap or leave a gap"


def test_windows_without_a_seed_read_every_book_from_its_first_token():
    books = make_books([11, 3, 9])
    assert books.windows(4).tolist() == [0, 4, 14, 18]


def test_order_is_a_function_of_seed_and_step():
    books = make_books([200, 300])
    order, again, other = (WindowOrder(books, 8, 4, seed) for seed in (3, 3, 4))
    late_first = [again.batch(step) for step in reversed(range(40))][::-1]  # asked for in another order
    assert all(np.array_equal(order.batch(s), late_first[s]) for s in range(40))
    assert not np.array_equal(order.batch(0), other.batch(0))


def test_one_epoch_reads_no_window_twice_and_the_next_cuts_elsewhere():
    books = make_books([200, 300])
    order = WindowOrder(books, 8, 4, 0)
    per_epoch = order._per_epoch
    first, second = (
        np.concatenate([order.batch(e * per_epoch + s)[:, 0] for s in range(per_epoch)]) for e in range(2)
    )
    assert len(set(first)) == len(first) == 4 * per_epoch
    assert set(first) != set(second)


def test_too_little_text_is_one_sentence():
    with pytest.raises(ValueError, match="too short: 20 tokens"):
        WindowOrder(make_books([20]), 16, 4, 0)


def test_folder_with_and_without_a_split(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "valid").mkdir()
    (tmp_path / "train" / "a.txt.gz").write_bytes(gzip.compress("A tale. \N{SNOWMAN}".encode()))
    (tmp_path / "train" / "b.txt").write_text("Another.")
    (tmp_path / "valid" / "c.txt").write_text("Held out.")
    train, valid = read_books(tmp_path)
    assert train == {"a.txt.gz": "A tale. \N{SNOWMAN}", "b.txt": "Another."}
    assert valid == {"c.txt": "Held out."}
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "t.txt").write_text("0123456789" * 10)
    train, valid = read_books(plain)
    assert len(train["t.txt"]) == 90
    assert train["t.txt"] + valid["t.txt"] == "0123456789" * 10


@pytest.mark.parametrize("make", [lambda p: p / "nowhere", lambda p: p])
def test_missing_or_empty_folder_is_one_sentence(tmp_path, make):
    with pytest.raises(ValueError, match="corpus folder"):
        read_books(make(tmp_path))


def test_cache_gives_the_same_tokens_and_notices_another_text(tmp_path):
    texts = {"a": "one two three", "b": "four \U0001f600 five"}
    tokenizer = train_tokenizer("bytes", texts.values())
    fresh, kept = (tokenize_books(texts, tokenizer, tmp_path) for _ in range(2))
    assert np.array_equal(fresh.tokens, kept.tokens)
    assert kept.tokens[kept.starts[:-1]].tolist() == [0, 0]  # each book begins with the end-of-text token
    assert tokenizer.decode(kept.tokens[kept.starts[1] :].tolist()) == texts["b"]
    changed = tokenize_books(texts | {"a": "one two four"}, tokenizer, tmp_path)
    assert not np.array_equal(changed.tokens, kept.tokens)


def test_hold_out_keeps_every_character():
    train, valid = hold_out({"a": "abcdefghij", "b": ""})
    assert (train, valid) == ({"a": "abcdefghi", "b": ""}, {"a": "j", "b": ""})
