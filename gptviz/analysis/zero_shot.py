"""The four zero-shot rules of GPT-1 (Section 5): no training, only the language model's own log-probabilities.

    sentiment        append "very" and compare the words "positive" and "negative" as what comes next
    acceptability    mean log-probability of the sentence's tokens, against a threshold
    multiple_choice  mean log-probability of the choice's tokens, given context and question
    winograd         put each candidate in the pronoun's place; mean log-probability of the tokens after it

The paper averages token log-probabilities and does not say how it treats the first token: here it is not scored,
since nothing comes before it. Knows no file and no page; data sets come from ``gptviz.tasks``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gptviz.analysis.likelihood import token_log_probabilities
from gptviz.analysis.scores import accuracy_score, best_threshold, matthews_score, roc_score
from gptviz.types.tasks import Classification, Example, MultipleChoice
from gptviz.types.zero_shot import RULES, Scored, Verdict, ZeroShot

VERY = " very"
WORDS = ("positive", "negative")
TRUE_NAMES = {
    "sentiment": ("positive", "pos", "1", "true", "yes"),
    "acceptability": ("acceptable", "grammatical", "1", "true", "yes"),
}
FALSE_NAMES = {
    "sentiment": ("negative", "neg", "0", "-1", "false", "no"),
    "acceptability": ("unacceptable", "ungrammatical", "0", "false", "no"),
}
CLASSES = {"sentiment": WORDS, "acceptability": ("acceptable", "unacceptable")}
POSSESSIVE = ("his", "its", "their", "whose")  # "her" is both, and is read as an object
ARTICLES = ("the", "a", "an", "my", "our", "your", "his", "her", "its", "their", "some", "this", "that", "these", "those")


@dataclass(frozen=True)
class _Candidate:
    """A text to score from character ``boundary`` on."""

    name: str
    text: str
    boundary: int


def zero_shot(
    lm,
    rule: str,
    examples: Sequence[Example | str],
    threshold: float | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> ZeroShot:
    """Apply one rule to examples, labelled or not, with every intermediate number.

    rule       one of RULES
    examples   Classification or plain texts (sentiment, acceptability); MultipleChoice (the other two)
    threshold  acceptability: nats. None: cross-fitted where the examples are labelled (each half is judged with
               the threshold that is best on the other half), else the median
    seed       of the halves and of the bootstrap
    progress   called with (texts done, texts in all); ``should_stop`` is asked between batches

    Raises ValueError, one sentence, on a wrong rule or example; likelihood.Stopped where stopped.
    """
    if rule not in RULES:
        raise ValueError(f"zero-shot rule {rule!r} is unknown; use one of {', '.join(RULES)}.")
    items = [_checked(rule, number, example) for number, example in enumerate(examples)]
    if not items:
        raise ValueError(f"no example to score; give at least one for the {rule} rule.")
    labels = [_label(rule, number, item) for number, item in enumerate(items)]
    groups = [_candidates(rule, item) for item in items]
    scored = _score(lm, groups, progress, should_stop)
    values = np.array([_value(rule, group) for group in scored])

    origin = ""
    if rule == "acceptability":
        thresholds, threshold, origin = _thresholds(values, labels, threshold, seed)
        predictions = [CLASSES[rule][0 if v >= t else 1] for v, t in zip(values, thresholds, strict=True)]
    elif rule == "sentiment":
        predictions = [WORDS[0 if value >= 0 else 1] for value in values]
    else:
        predictions = [int(np.argmax([c.mean for c in group])) for group in scored]
    verdicts = tuple(
        Verdict(group, float(value), prediction, label)
        for group, value, prediction, label in zip(scored, values, predictions, labels, strict=True)
    )
    return ZeroShot(
        rule, lm.name, tuple(items), verdicts, _scores(rule, verdicts, seed), threshold, origin, seed
    )


def pronoun_span(example: MultipleChoice) -> tuple[int, int]:
    """Where the pronoun stands in the context: the blank ``_``, or the word the question quotes.

    A quoted word that occurs several times is taken where it first follows both candidates, else at its last place.

    >>> pronoun_span(MultipleChoice("A cat saw a dog and it ran.", 'What does "it" refer to?', ["A cat", "a dog"]))
    (20, 22)
    """
    context = example.context
    blanks = [match.span() for match in re.finditer(r"(?<!\w)_+(?!\w)", context)]
    if blanks:
        if len(blanks) > 1:
            raise ValueError(f"the context has {len(blanks)} blanks; mark one pronoun with a single _.")
        return blanks[0]
    quoted = re.search(r"[\"“”'‘](.+?)[\"“”'’]", example.question)
    if not quoted:
        raise ValueError('mark the pronoun with _ in the context, or quote it in the question: what does "it" mean?')
    word = quoted.group(1).strip()
    places = [match.span() for match in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", context)]
    if not places:
        raise ValueError(f"the context does not hold the pronoun {word!r} that the question quotes.")
    lowered = context.lower()
    mentions = [lowered.find(choice.lower().strip()) for choice in example.choices]
    after = [span for span in places if all(0 <= at < span[0] for at in mentions)]
    return after[0] if after else places[-1]


def substitute(example: MultipleChoice, choice: str) -> tuple[str, int]:
    """The context with ``choice`` in the pronoun's place, and the character at which the rest begins.

    >>> substitute(MultipleChoice("A cat saw a dog and _ ran.", "", ["A cat", "a dog"]), "A cat")
    ('A cat saw a dog and a cat ran.', 25)
    """
    start, end = pronoun_span(example)
    before, pronoun, after = example.context[:start], example.context[start:end], example.context[end:]
    if not after.strip():
        raise ValueError("nothing follows the pronoun, so the rule has no token to score; write on after it.")
    opens = not before.strip() or before.rstrip()[-1] in ".!?:\"“"
    name = choice.strip()
    head, _, tail = name.partition(" ")
    if head.lower() in ARTICLES and tail:
        name = f"{head.capitalize() if opens else head.lower()} {tail}"
    if pronoun.lower() in POSSESSIVE:
        name += "'" if name.endswith("s") else "'s"
    return before + name + after, len(before) + len(name)


def _checked(rule: str, number: int, example: Example | str) -> Example:
    wanted = Classification if rule in CLASSES else MultipleChoice
    if isinstance(example, str) and wanted is Classification:
        example = Classification(example)
    if not isinstance(example, wanted):
        raise ValueError(f"example {number} is of type {type(example).__name__}; the {rule} rule needs {wanted.__name__}.")
    return example


def _label(rule: str, number: int, example: Example) -> str | int | None:
    if example.label is None or rule not in CLASSES:
        return example.label
    name = str(example.label).strip().lower()
    for names, label in zip((TRUE_NAMES[rule], FALSE_NAMES[rule]), CLASSES[rule], strict=True):
        if name in names:
            return label
    known = " or ".join(CLASSES[rule])
    raise ValueError(f"example {number} has the label {example.label!r}; the {rule} rule knows {known} (or 1 and 0).")


def _candidates(rule: str, example: Example) -> list[_Candidate]:
    if rule == "sentiment":
        lead = example.text.rstrip() + VERY
        return [_Candidate(word, f"{lead} {word}", len(lead)) for word in WORDS]
    if rule == "acceptability":
        return [_Candidate("sentence", example.text.strip(), 0)]
    if rule == "winograd":
        return [_Candidate(choice, *substitute(example, choice)) for choice in example.choices]
    lead = " ".join(part.strip() for part in (example.context, example.question) if part.strip())
    return [_Candidate(choice, f"{lead} {choice.strip()}", len(lead)) for choice in example.choices]


def _score(lm, groups: list[list[_Candidate]], progress, should_stop) -> list[tuple[Scored, ...]]:
    """Tokenize every candidate, score its tokens after the boundary, and hand the results back in groups."""
    flat = [candidate for group in groups for candidate in group]
    tokens, first, cut = [], [], []
    for candidate in flat:
        whole = lm.tokenize(candidate.text)
        start = next((n for n, (_, end) in enumerate(whole.spans) if end > candidate.boundary), len(whole))
        over = max(0, len(whole) - 1 - lm.spec.n_ctx)  # the oldest tokens go first; the scored ones stay
        start = max(start, 1)
        if start >= len(whole):
            raise ValueError(f"{candidate.text[:60]!r} has too few tokens to be scored; write at least two words.")
        if over >= start:
            raise ValueError(
                f"{candidate.name[:40]!r} alone has {len(whole) - start:,} tokens; "
                f"the context of {lm.name} holds {lm.spec.n_ctx:,}."
            )
        tokens.append((whole.ids[over:], whole.pieces[over:]))
        first.append(start - over)
        cut.append(over)
    found = token_log_probabilities(lm, [ids for ids, _ in tokens], first, progress=progress, should_stop=should_stop)
    scored = iter(
        Scored(candidate.name, candidate.text, pieces, start, values, over)
        for candidate, (_, pieces), start, values, over in zip(flat, tokens, first, found, cut, strict=True)
    )
    return [tuple(next(scored) for _ in group) for group in groups]


def _value(rule: str, group: Sequence[Scored]) -> float:
    if rule == "sentiment":  # the words may have several tokens: their whole log-probabilities are compared
        return group[0].total - group[1].total
    if rule == "acceptability":
        return group[0].mean
    best, second = sorted((c.mean for c in group), reverse=True)[:2]
    return best - second


def _thresholds(
    values: np.ndarray, labels: Sequence[str | None], threshold: float | None, seed: int
) -> tuple[np.ndarray, float, str]:
    """The threshold each sentence is judged with, the one to report, and where it comes from."""
    if threshold is not None:
        return np.full(len(values), float(threshold)), float(threshold), "given"
    truth = np.array([label == CLASSES["acceptability"][0] for label in labels])
    if None in labels or len(values) < 4 or truth.all() or not truth.any():
        median = float(np.median(values))
        return np.full(len(values), median), median, "median of these examples"
    half = np.zeros(len(values), bool)
    half[np.random.default_rng(seed).permutation(len(values))[: len(values) // 2]] = True
    thresholds = np.where(half, best_threshold(values[~half], truth[~half]), best_threshold(values[half], truth[half]))
    return thresholds, best_threshold(values, truth), "cross-fitted on these examples"


def _scores(rule: str, verdicts: Sequence[Verdict], seed: int) -> tuple:
    known = [verdict for verdict in verdicts if verdict.label is not None]
    if not known:
        return ()
    labels = [verdict.label for verdict in known]
    chance = float(np.mean([1 / max(2, len(verdict.candidates)) for verdict in known]))
    accuracy = accuracy_score([verdict.correct for verdict in known], chance, labels, seed)
    if rule not in CLASSES:
        return (accuracy,)
    truth = [label == CLASSES[rule][0] for label in labels]
    area = roc_score([verdict.score for verdict in known], truth, seed)
    if rule == "sentiment":
        return accuracy, area
    called = [verdict.prediction == CLASSES[rule][0] for verdict in known]
    return matthews_score(called, truth, seed), accuracy, area
