"""The token loop: parity with Hugging Face's greedy generate, seeds, stops, the context limit, broken characters."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from gptviz.analysis.records import branch, load, record_of, save, with_branch
from gptviz.models.generation import TextStream
from gptviz.models.language_model import LanguageModel
from gptviz.models.tiny import FAMILIES, tiny_model
from gptviz.types.sampling import Sampling

PROMPT = "The river runs past the old mill"
CHAPTER = Sampling(temperature=0.85, top_k=50, top_p=0.92, repetition_penalty=1.3, seed=4)


@pytest.fixture(scope="module")
def lm():
    return LanguageModel("random-gpt2", *tiny_model("gpt2"))


def text_of(lm, sampling, n=30, prompt=PROMPT, **options):
    return "".join(s.delta for s in lm.generate(prompt, sampling, n, **options))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_greedy_equals_hugging_face(family, penalty):
    lm = LanguageModel(family, *tiny_model(family))
    ids = torch.tensor([lm.encode(PROMPT.lower())])
    out = lm.model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        repetition_penalty=penalty,
        max_new_tokens=25,
        pad_token_id=0,
    )
    steps = list(lm.generate(PROMPT.lower(), Sampling(temperature=0, repetition_penalty=penalty), 25))
    assert [s.token_id for s in steps] == out[0, ids.shape[1] :].tolist()


def test_each_step_is_drawn_from_what_the_model_says_of_the_whole_text(lm):
    """The cache changes nothing: raw probability, rank and entropy equal a pass over the whole text."""
    ids = lm.encode(PROMPT)
    for step in lm.generate(PROMPT, CHAPTER, 10):
        p = torch.softmax(lm.logits(ids)[-1], -1)
        assert step.raw_probability == pytest.approx(float(p[step.token_id]), abs=1e-5)
        assert step.rank == 1 + int((p > p[step.token_id] + 1e-9).sum())
        assert step.surprisal == pytest.approx(-float(p[step.token_id].log()), abs=1e-4)
        assert step.entropy == pytest.approx(-float((p * p.log()).sum()), abs=1e-4)
        chosen = next(c for c in step.candidates if c.id == step.token_id)
        assert chosen.probability == step.probability > 0
        ids.append(step.token_id)


def test_one_forward_pass_a_token_and_none_before_the_first_is_asked_for(lm):
    before = lm.forward_calls
    steps = lm.generate(PROMPT, CHAPTER, 7)
    assert lm.forward_calls == before
    assert len(list(steps)) == 7
    assert lm.forward_calls == before + 7


def test_the_same_seed_gives_the_same_text_and_another_seed_another(lm):
    other = Sampling(**{**vars(CHAPTER), "seed": 5})
    assert text_of(lm, CHAPTER) == text_of(lm, CHAPTER)
    assert text_of(lm, CHAPTER) != text_of(lm, other)


def test_the_same_seed_gives_the_same_text_in_another_process(lm):
    program = (
        "from gptviz.models.language_model import LanguageModel\n"
        "from gptviz.models.tiny import tiny_model\n"
        "from gptviz.types.sampling import Sampling\n"
        "lm = LanguageModel('random-gpt2', *tiny_model('gpt2'))\n"
        f"print([s.token_id for s in lm.generate({PROMPT!r}, {CHAPTER!r}, 20)])"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.strip() == str([s.token_id for s in lm.generate(PROMPT, CHAPTER, 20)])


def test_stop_is_asked_before_each_pass(lm):
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 3

    steps = list(lm.generate(PROMPT, CHAPTER, 50, should_stop=stop))
    assert len(steps) == 3
    assert record_of(lm, PROMPT, CHAPTER, steps).finish == "stopped"


def test_end_of_text_at_step_one(lm):
    (step,) = lm.generate(PROMPT, CHAPTER, 20, forced=lm.eos_id)
    assert (step.index, step.finish, step.delta, step.forced) == (0, "end_of_text", "", True)


def test_a_prompt_at_the_context_limit_gives_one_token_or_slides(lm):
    ids = lm.encode(PROMPT * 40)[: lm.spec.n_ctx]
    prompt = lm.decode(ids)
    assert len(lm.encode(prompt)) == lm.spec.n_ctx
    (step,) = lm.generate(prompt, CHAPTER, 20, on_context_limit="error")
    assert step.finish == "context"
    steps = list(lm.generate(prompt, CHAPTER, 20))
    assert [s.context_start for s in steps] == [0] + [lm.spec.n_ctx // 2 + 1] * 19
    assert steps[-1].finish == "length"


def test_a_prompt_beyond_the_context_limit_is_one_sentence_or_its_end(lm):
    prompt = PROMPT * 40
    n = len(lm.encode(prompt))
    assert n > lm.spec.n_ctx
    before = lm.forward_calls
    with pytest.raises(ValueError, match=f"has {n} tokens and the model reads at most 128"):
        lm.generate(prompt, CHAPTER, 5, on_context_limit="error")
    assert lm.forward_calls == before
    first = next(iter(lm.generate(prompt, CHAPTER, 5)))
    assert first.context_start == n - lm.spec.n_ctx


def test_after_sliding_the_model_sees_exactly_the_window(lm):
    ids = lm.encode(PROMPT * 40)[:120]
    for step in lm.generate(lm.decode(ids), CHAPTER, 30):
        p = torch.softmax(lm.logits(ids[step.context_start :])[-1], -1)
        assert step.raw_probability == pytest.approx(float(p[step.token_id]), abs=1e-5)
        ids.append(step.token_id)


def test_an_empty_prompt_starts_from_the_start_token_or_says_so(lm):
    assert len(list(lm.generate("", CHAPTER, 3))) == 3
    without = LanguageModel("random-gpt1", *tiny_model("gpt1"))
    with pytest.raises(ValueError, match="prompt is empty"):
        without.generate("", CHAPTER, 3)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"on_context_limit": "crop"}, "'crop'"), ({"forced": 10**6}, "forced token is 1000000")],
)
def test_options_that_do_not_exist_say_what_does(lm, options, says):
    with pytest.raises(ValueError, match=says):
        lm.generate(PROMPT, CHAPTER, 3, **options)


@pytest.mark.parametrize("n", [0, -1, 2.5, True])
def test_the_number_of_new_tokens_is_checked(lm, n):
    with pytest.raises(ValueError, match="max_new_tokens"):
        lm.generate(PROMPT, CHAPTER, n)


@pytest.mark.parametrize("text", ["naïve 🙂 café", "สวัสดี", "مرحبا", "你好", "<script>$x$\x00"])
def test_a_text_fed_byte_by_byte_never_shows_a_broken_character(text):
    stream = TextStream()
    deltas = [stream.feed(bytes([b])) for b in text.encode()]
    assert "".join(deltas) == text
    assert all("�" not in d and "‹" not in d for d in deltas)


def test_bytes_that_are_no_character_are_shown_as_bytes():
    stream = TextStream()
    assert [stream.feed(b) for b in (b"\xf0\x9f", b"a", b"\xff", b"\xe2")] == ["", "‹F0 9F›a", "‹FF›", ""]
    assert stream.pending == b"\xe2"


def test_a_record_comes_back_from_json_equal(lm):
    record = record_of(lm, PROMPT, CHAPTER, lm.generate(PROMPT, CHAPTER, 12))
    assert load(save(record)) == record
    assert load(save(record).encode()) == record


def test_replay_and_branch(lm):
    record = record_of(lm, PROMPT, CHAPTER, lm.generate(PROMPT, CHAPTER, 15))
    assert record.upto(5).token_ids == record.token_ids[:5]
    same = with_branch(record, 5, branch(lm, record, 5, record.token_ids[5], 15))
    assert same.token_ids == record.token_ids
    assert same.text == record.text
    other = next(c.id for c in record.steps[5].candidates if c.id != record.token_ids[5])
    made = with_branch(record, 5, branch(lm, record, 5, other, 15))
    assert made.token_ids[:6] == (*record.token_ids[:5], other)
    assert [s.forced for s in made.steps] == [i == 5 for i in range(len(made.steps))]
    with pytest.raises(ValueError, match="no step 15"):
        branch(lm, record, 15, 0, 20)
    with pytest.raises(ValueError, match="replay to is 16"):
        record.upto(16)


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "not json",
        "[]",
        "{}",
        "[" * 100_000,
        ('"version":1', '"version":2'),
        ('"model":"random-gpt2"', '"model":3'),
        ('"rank":', '"rang":'),
        ('"index":0', '"index":7'),
        ('"temperature":0.85', '"temperature":-1'),
        ('"temperature":0.85', '"warmth":1'),
        ('"entropy":', '"entropy":NaN,"was":'),
        ('"forced":false', '"forced":"<script>"'),
        ('"steps":[', '"steps":[[],'),
    ],
    ids=str,
)
def test_a_file_that_is_no_record_is_refused_in_one_sentence(lm, damage):
    text = damage
    if isinstance(damage, tuple):
        whole = save(record_of(lm, PROMPT, CHAPTER, lm.generate(PROMPT, CHAPTER, 2)))
        text = whole.replace(*damage, 1)
        assert text != whole
    with pytest.raises(ValueError) as error:
        load(text)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200
