"""The task in the prompt: five tasks as text, zero or more example pairs, and the probability of a right answer.

What it is: P(output | input, task) of the GPT-2 paper (Section 2) with the task stated in plain text. The example
pairs and inputs here were written for this project.
What it does not know: pages, decoding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gptviz.analysis.likelihood import token_log_probabilities
from gptviz.types.prompts import AnswerProbability, Pair, TaskPrompt

TASKS: dict[str, TaskPrompt] = {
    task.name: task
    for task in (
        TaskPrompt(
            "translation", "Translation", "{input} = {output}", "{input} =", "\n", "\n",
            "Example pairs “english sentence = french sentence”, then “english sentence =”; greedy, first "
            "sentence kept (Section 3.7)",
        ),
        TaskPrompt(
            "question", "Question answering", "Q: {input}\nA: {output}", "Q: {input}\nA:", "\n\n", "\n",
            "Example question-answer pairs, then the question (Section 3.8, Natural Questions); for CoQA the "
            "document, the dialogue so far and “A:”, greedy (Section 3.5)",
        ),
        TaskPrompt(
            "summary", "Summary", "{input}\nTL;DR: {output}", "{input}\nTL;DR:", "\n\n", "\n\n",
            "The article, then “TL;DR:”; top-k sampling with k = 2, 100 tokens, first three sentences kept "
            "(Section 3.6)",
        ),
        TaskPrompt(
            "sentiment", "Sentiment", "Review: {input}\nSentiment: {output}", "Review: {input}\nSentiment:",
            "\n\n", "\n", "Not in the GPT-2 paper; GPT-1 read sentiment from “very” + positive or negative (Section 5)",
        ),
        TaskPrompt(
            "arithmetic", "Arithmetic", "{input} = {output}", "{input} =", "\n", "\n",
            "Not in the GPT-2 paper; later work tested it on GPT-3",
        ),
    )
}  # fmt: skip

EXAMPLES: dict[str, tuple[Pair, ...]] = {
    "translation": (
        Pair("The house is red.", "La maison est rouge."),
        Pair("The dog is sleeping.", "Le chien dort."),
        Pair("I like coffee.", "J'aime le café."),
    ),
    "question": (
        Pair("What is the capital of Spain?", "Madrid"),
        Pair("How many legs does a spider have?", "Eight"),
        Pair("Which planet is closest to the sun?", "Mercury"),
    ),
    "summary": (
        Pair(
            "The school kitchen ran out of flour on Monday. A baker from the next street brought two sacks and "
            "stayed to help. By noon every child had eaten fresh bread.",
            "A neighbour's flour saved the school lunch.",
        ),
    ),
    "sentiment": (
        Pair("A joy from start to finish.", "positive"),
        Pair("Two hours I will never get back.", "negative"),
        Pair("The cast is wonderful and the music stays with you.", "positive"),
    ),
    "arithmetic": (Pair("3 + 4", "7"), Pair("5 + 6", "11"), Pair("20 + 15", "35")),
}

QUERIES: dict[str, Pair] = {
    "translation": Pair("The cat is black.", "Le chat est noir."),
    "question": Pair("What is the capital of Italy?", "Rome"),
    "summary": Pair(
        "The town council voted on Tuesday to close the old bridge over the river for two years. Engineers found "
        "cracks in three of its stone arches last spring. Buses will take a longer way, and a small ferry will carry "
        "people on foot. The mayor said the repair would cost nine million euros, half of it paid by the state.",
        "The old bridge will be closed for two years.",
    ),
    "sentiment": Pair("The plot was dull and I fell asleep.", "negative"),
    "arithmetic": Pair("12 + 7", "19"),
}


def build(task: str, query: str, examples: Sequence[Pair] = ()) -> str:
    """The prompt exactly as the model reads it.

    >>> build("arithmetic", "1 + 1", [Pair("2 + 3", "5")])
    '2 + 3 = 5\\n1 + 1 ='
    """
    if task not in TASKS:
        raise ValueError(f"There is no task {task!r}; there are: {', '.join(TASKS)}.")
    if not query.strip():
        raise ValueError("The input is empty: type what the model should work on.")
    form = TASKS[task]
    for number, pair in enumerate(examples, 1):
        if not pair.input.strip() or not pair.output.strip():
            raise ValueError(f"Example pair {number} is not complete: fill in both sides or remove it.")
    # str.format would read braces in the reader's text, so the fields are put in one by one.
    lines = [_fill(form.example, pair.input.strip(), pair.output.strip()) for pair in examples]
    return form.between.join([*lines, _fill(form.query, query.strip())])


def _fill(template: str, source: str, target: str = "") -> str:
    before, _, rest = template.partition("{input}")
    middle, _, after = rest.partition("{output}")
    return before + source + middle + (target + after if "{output}" in template else "")


def answer(task: str, continuation: str) -> str:
    """The continuation up to where the task's answer ends.

    >>> answer("question", " Rome\\n\\nQ: What")
    'Rome'
    """
    stop = TASKS[task].stop
    text = continuation.lstrip()
    return (text.partition(stop)[0] if stop else text).strip()


def answer_probability(lm, prompt: str, right: str) -> AnswerProbability:
    """How probable `right` is as the text right after `prompt`; a space is put before it where it has none.

    Not the probability that the model answers rightly: other wordings count as other texts, and the answer may go
    on. Raises ValueError for an empty answer or a text longer than the context.
    """
    if not right.strip():
        raise ValueError("The right answer is empty: type it to see how probable it is.")
    prompt_ids = list(lm.encode(prompt))
    answer_ids = list(lm.encode(right if right[0].isspace() else " " + right))
    if not prompt_ids:
        raise ValueError("The prompt is empty: type at least one word.")
    if len(prompt_ids) + len(answer_ids) > lm.spec.n_ctx:
        raise ValueError(
            f"Prompt and answer have {len(prompt_ids) + len(answer_ids)} tokens; "
            f"the model reads at most {lm.spec.n_ctx}. Shorten one of them."
        )
    (log_p,) = token_log_probabilities(lm, [prompt_ids + answer_ids], [len(prompt_ids)])
    first = lm.logits(prompt_ids)[-1]
    rank = 1 + int((first > first[answer_ids[0]]).sum())
    pieces = tuple(lm.piece(i) for i in answer_ids)
    return AnswerProbability(right, pieces, tuple(np.exp(log_p).tolist()), float(log_p.sum()), rank)
