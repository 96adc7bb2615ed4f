"""Task prompts: exact text, whatever the reader types, and the probability of an answer."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gptviz.analysis.prompts import EXAMPLES, QUERIES, TASKS, answer, answer_probability, build
from gptviz.models.language_model import LanguageModel
from gptviz.models.tiny import tiny_model
from gptviz.types.prompts import Pair


@pytest.fixture(scope="module")
def lm():
    return LanguageModel("random-gpt2", *tiny_model("gpt2"))


def test_the_prompt_is_exactly_what_the_paper_describes():
    pairs = [Pair("The house is red.", "La maison est rouge.")]
    assert build("translation", "The cat is black.", pairs) == (
        "The house is red. = La maison est rouge.\nThe cat is black. ="
    )
    assert build("question", "Who?", [Pair("What?", "That")]) == "Q: What?\nA: That\n\nQ: Who?\nA:"
    assert build("summary", "A long story.") == "A long story.\nTL;DR:"


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_examples_and_a_query_and_ends_where_the_answer_begins(task):
    prompt = build(task, QUERIES[task].input, EXAMPLES[task])
    assert prompt.count(EXAMPLES[task][0].output) >= 1
    assert prompt == prompt.rstrip()
    assert answer(task, f" {QUERIES[task].output}{TASKS[task].stop}more") == QUERIES[task].output


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1).filter(str.strip))
def test_text_from_a_reader_goes_in_as_it_is(source, target):
    prompt = build("question", source, [Pair(source, target)])
    assert prompt == f"Q: {source.strip()}\nA: {target.strip()}\n\nQ: {source.strip()}\nA:"


def test_braces_are_text():
    assert build("arithmetic", "{output} {input} {0}") == "{output} {input} {0} ="


def test_incomplete_prompts_say_what_is_missing():
    with pytest.raises(ValueError, match="Example pair 2 is not complete"):
        build("question", "Who?", [Pair("a", "b"), Pair("c", " ")])
    with pytest.raises(ValueError, match="input is empty"):
        build("question", " ")
    with pytest.raises(ValueError, match="no task 'poetry'"):
        build("poetry", "x")


def test_the_probability_of_an_answer_is_the_product_of_its_tokens(lm):
    found = answer_probability(lm, "The capital is", "far away")
    prompt, right = lm.encode("The capital is"), lm.encode(" far away")
    p = torch.softmax(lm.logits(prompt + right), -1)
    expected = [float(p[len(prompt) - 1 + i, token]) for i, token in enumerate(right)]
    assert found.probabilities == pytest.approx(expected, abs=1e-5)
    assert math.exp(found.log_probability) == pytest.approx(math.prod(expected), rel=1e-4)
    first = p[len(prompt) - 1]
    assert found.first_rank == 1 + int((first > first[right[0]] * (1 + 1e-6)).sum())


def test_an_answer_that_cannot_be_scored_says_so(lm):
    for prompt, right, says in [
        ("a", " ", "answer is empty"),
        ("", "b", "prompt is empty"),
        ("a " * 200, "b", "at most"),
    ]:
        with pytest.raises(ValueError, match=says):
            answer_probability(lm, prompt, right)
