"""Serialization of the four task forms: golden sequences, truncation at every length, order of a pair."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gptviz.models.language_model import LanguageModel
from gptviz.models.tiny import tiny_model
from gptviz.tasks.head import head_count
from gptviz.tasks.serialize import batch, serialize, special_tokens
from gptviz.types.tasks import Classification, Entailment, MultipleChoice, Similarity

LM = LanguageModel("random-gpt2", *tiny_model("gpt2"))
V = LM.spec.vocab_size
START, DELIM, EXTRACT = V, V + 1, V + 2


def ids_of(text):
    return tuple(LM.encode(text))


def test_classification_is_start_text_extract():
    out = serialize(Classification("the old mill", "yes"), LM)
    assert out.sequences[0].ids == (START, *ids_of("the old mill"), EXTRACT)
    assert out.sequences[0].roles == ("start", *["text"] * len(ids_of("the old mill")), "extract")
    assert out.join == "one" and out.label == "yes"


def test_entailment_puts_a_delimiter_between_premise_and_hypothesis():
    (sequence,) = serialize(Entailment("the river runs", "it moves"), LM).sequences
    assert sequence.ids == (START, *ids_of("the river runs"), DELIM, *ids_of("it moves"), EXTRACT)
    assert sequence.pieces[0] == "Start" and sequence.pieces[sequence.ids.index(DELIM)] == "Delim"
    assert sequence.extract == len(sequence) - 1 and sequence.roles[sequence.extract] == "extract"


def test_similarity_writes_both_orders():
    out = serialize(Similarity("a film", "the mill", 2.5), LM)
    a, b = ids_of("a film"), ids_of("the mill")
    assert [s.ids for s in out.sequences] == [(START, *a, DELIM, *b, EXTRACT), (START, *b, DELIM, *a, EXTRACT)]
    assert out.join == "add"


def test_multiple_choice_writes_one_sequence_for_each_choice():
    out = serialize(MultipleChoice("The mill hums.", "Why?", ["the wind", "a letter", "tall trees"], 0), LM)
    shared = ids_of("The mill hums.") + ids_of(" Why?")
    assert [s.ids for s in out.sequences] == [
        (START, *shared, DELIM, *ids_of(choice), EXTRACT) for choice in ("the wind", "a letter", "tall trees")
    ]
    assert out.join == "softmax"
    assert set(out.sequences[1].roles) == {"start", "context", "question", "delimiter", "choice 1", "extract"}


def test_an_empty_question_or_context_is_left_out():
    for example in (MultipleChoice("The mill", "", ["a", "b"]), MultipleChoice("", "The mill", ["a", "b"])):
        assert serialize(example, LM).sequences[0].ids == (START, *ids_of("The mill"), DELIM, *ids_of("a"), EXTRACT)


@pytest.mark.parametrize("family", ["gpt1", "gpt2", "gpt-neo", "gpt-neox", "opt", "llama"])
def test_special_tokens_are_new_rows_of_every_model(family):
    lm = LanguageModel(family, *tiny_model(family))
    rows = lm.model.get_input_embeddings().weight.shape[0]
    assert special_tokens(lm).new_ids == (rows, rows + 1, rows + 2)
    text = "Start <|endoftext|> $ Delim Extract </s> <unk>"
    ids = serialize(Entailment(text, text), lm).sequences[0].ids
    assert [i for i in ids if i >= rows] == [rows, rows + 1, rows + 2], "typed special tokens stay text"


def test_own_delimiters_are_the_models_tokens_and_need_no_new_row():
    dollar = serialize(Entailment("the mill", "it hums"), LM, delimiter="$")
    assert dollar.special.delimiter == ids_of("$") and len(dollar.special.new_ids) == 2
    words = serialize(Entailment("the mill", "it hums"), LM, delimiter=" so it follows: ")
    assert words.sequences[0].roles.count("delimiter") == len(ids_of(" so it follows: ")) > 1
    assert words.special.new_ids == (V, V + 1) == (words.special.start, words.special.extract)


def test_a_tokenizer_alone_is_enough():
    assert serialize(Classification("the mill"), LM.tokenizer).sequences == serialize(
        Classification("the mill"), LM
    ).sequences


def test_a_fine_tuned_models_own_special_tokens_are_kept():
    special = special_tokens(LM)
    assert serialize(Classification("the mill"), LM, special=special).special is special
    with pytest.raises(ValueError, match="either delimiter or special"):
        serialize(Classification("the mill"), LM, special=special, delimiter="$")


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=40).filter(str.strip)
examples = st.one_of(
    st.builds(Classification, texts),
    st.builds(Entailment, texts, texts),
    st.builds(Similarity, texts, texts),
    st.builds(MultipleChoice, texts, st.one_of(st.just(""), texts), st.lists(texts, min_size=2, max_size=4)),
)


@settings(max_examples=60, deadline=None)
@given(examples, st.sampled_from([None, "$", " and then "]))
def test_truncation_at_every_length_from_the_minimum_up(example, delimiter):
    full = serialize(example, LM, delimiter=delimiter, max_length=LM.spec.n_ctx)
    n_delimiter = len(full.special.delimiter) if example.form != "classification" else 0
    n_parts = len(set(full.sequences[0].roles) - {"start", "delimiter", "extract"})
    minimum = 2 + n_delimiter + n_parts
    with pytest.raises(ValueError, match=f"at least {minimum}"):
        serialize(example, LM, delimiter=delimiter, max_length=minimum - 1)
    longest = max(len(s) for s in full.sequences)
    for max_length in range(minimum, min(longest + 2, LM.spec.n_ctx + 1)):
        out = serialize(example, LM, delimiter=delimiter, max_length=max_length)
        assert max(len(s) for s in out.sequences) == min(longest, max_length)
        for sequence, whole in zip(out.sequences, full.sequences, strict=True):
            roles = sequence.roles
            assert roles[0] == "start" and roles[-1] == "extract" and sequence.extract == len(roles) - 1
            assert roles.count("delimiter") == n_delimiter
            kept = {r: roles.count(r) for r in dict.fromkeys(roles)}
            assert kept.keys() == {r: 0 for r in whole.roles}.keys(), "no part disappears"
            for role in kept:  # what is kept is the beginning of the part
                part = [i for i, r in zip(sequence.ids, roles, strict=True) if r == role]
                assert part == [i for i, r in zip(whole.ids, whole.roles, strict=True) if r == role][: len(part)]
        for sequence in out.sequences:  # a part that lost tokens is, within one token, no shorter than any other
            for name, _ in sequence.cut:
                others = [s.roles.count(r) for s in out.sequences for r in set(s.roles) - {"start", "extract", "delimiter"}
                          if not (name.startswith("choice") and r.startswith("choice"))]
                assert sequence.roles.count(name) >= max(others) - 1


@settings(max_examples=40, deadline=None)
@given(texts, texts, st.integers(5, 40))
def test_a_pair_is_cut_alike_in_both_orders(a, b, max_length):
    one = serialize(Similarity(a, b), LM, max_length=max_length)
    other = serialize(Similarity(b, a), LM, max_length=max_length)
    assert {s.ids for s in one.sequences} == {s.ids for s in other.sequences}


def test_added_representations_do_not_depend_on_the_order_of_the_pair():
    lm = LanguageModel("random-gpt2", *tiny_model("gpt2", seed=3))
    lm.model.resize_token_embeddings(V + 3, mean_resizing=False)

    def added(example):
        packed = batch([serialize(example, lm, special=special_tokens(LM))])
        with torch.no_grad():
            hidden = lm.model.base_model(
                torch.tensor(packed.ids), attention_mask=torch.tensor(packed.attention_mask)
            ).last_hidden_state  # (N, T, D)
        read = hidden[torch.arange(len(packed.extract)), torch.tensor(packed.extract)]  # (N, D)
        return read

    one, other = added(Similarity("The baker opens", "the tall trees")), added(Similarity("the tall trees", "The baker opens"))
    assert torch.allclose(one.sum(0), other.sum(0), atol=1e-5)
    assert not torch.allclose(one[0], other[0], atol=1e-2), "each order alone does depend on it"


def test_batches_are_padded_on_the_right_with_mask_and_owner():
    packed = batch([serialize(MultipleChoice("the mill", "why?", ["a", "tall trees"], n % 2), LM) for n in range(3)])
    assert packed.ids.shape == packed.attention_mask.shape == (6, packed.attention_mask.sum(1).max())
    assert packed.owner.tolist() == [0, 0, 1, 1, 2, 2] and packed.labels == (0, 1, 0)
    assert (packed.ids[np.arange(6), packed.extract] == EXTRACT).all()
    assert (packed.attention_mask.sum(1) == packed.extract + 1).all()
    assert (packed.ids[packed.attention_mask == 0] == 0).all()
    assert not packed.ids.flags.writeable


def test_batches_refuse_mixed_forms_and_special_tokens():
    one = serialize(Classification("the mill"), LM)
    with pytest.raises(ValueError, match="one task form"):
        batch([one, serialize(Entailment("the mill", "hums"), LM)])
    with pytest.raises(ValueError, match="one set of special tokens"):
        batch([one, serialize(Classification("the mill"), LM, delimiter="$")])
    with pytest.raises(ValueError, match="empty batch"):
        batch([])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Classification("  "), "text is empty"),
        (lambda: Entailment("a", 3), "hypothesis must be a text, not int"),
        (lambda: Similarity("a", "b", float("nan")), "not finite"),
        (lambda: Similarity("a", "b", True), "neither a number nor a class"),
        (lambda: MultipleChoice("a", "b", ["only"]), "at least 2 choices, got 1"),
        (lambda: MultipleChoice("a", "b", "ab"), "must be a list"),
        (lambda: MultipleChoice(" ", "", ["a", "b"]), "both empty"),
        (lambda: MultipleChoice("a", "b", ["x", "y"], 2), "label 2 is out of range"),
        (lambda: MultipleChoice("a", "b", ["x", " "]), "choice 1 is empty"),
        (lambda: Classification("a", ""), "not a class"),
        (lambda: serialize("text", LM), "cannot serialize a str"),
        (lambda: serialize(Classification("a"), LM, max_length=1000), "longer than the model's context of 128"),
        (lambda: serialize(Classification("a"), LM, max_length="8"), "whole number"),
        (lambda: serialize(Classification("a"), LM, delimiter=" "), "delimiter ' ' is empty"),
        (lambda: serialize(Classification("a"), object()), "neither a loaded model nor a tokenizer"),
    ],
)
def test_wrong_input_gets_one_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_gpt1s_head_counts_by_hand():
    special = special_tokens(LM)
    three_way = head_count("entailment", LM.spec, special, n_classes=3, bias=True)
    assert (three_way.head, three_way.embeddings) == (32 * 3 + 3, 3 * 32)
    choice = head_count("multiple_choice", LM.spec, special, n_classes=4)
    assert choice.head == 32 and choice.outputs == 1
    assert choice.share == pytest.approx((32 + 96) / LM.spec.n_parameters)
    with pytest.raises(ValueError, match="at least 2 outputs, got 1"):
        head_count("classification", LM.spec, special, n_classes=1)
