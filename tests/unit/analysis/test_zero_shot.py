"""The four zero-shot rules: every number against one plain forward pass, batched or not, and by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gptviz.analysis.likelihood import Stopped, token_log_probabilities
from gptviz.analysis.scores import area_under_roc, best_threshold, matthews
from gptviz.analysis.zero_shot import pronoun_span, substitute, zero_shot
from gptviz.models.language_model import LanguageModel
from gptviz.models.tiny import FAMILIES, tiny_model
from gptviz.types.tasks import Classification, Entailment, MultipleChoice

LM = LanguageModel("random-gpt2", *tiny_model("gpt2"))
SENTENCES = ["The river runs past the old mill.", "it is good", "Nobody knows who planted the trees", "10, 100 😀 ok", "a b"]


def plain(lm, ids):
    """Log-probability of each token but the first, from the model's own logits, one text at a time."""
    logp = torch.log_softmax(lm.logits(ids[:-1]).double(), -1)
    return logp[torch.arange(len(ids) - 1), torch.tensor(ids[1:])].numpy()


@pytest.mark.parametrize("family", FAMILIES)
def test_batched_equals_one_forward_pass_a_text(family):
    lm = LanguageModel(family, *tiny_model(family))
    texts = [list(lm.encode(s)) for s in SENTENCES]
    for batch_tokens in (1, 64, 4096):
        found = token_log_probabilities(lm, texts, [1] * len(texts), batch_tokens=batch_tokens)
        for ids, values in zip(texts, found, strict=True):
            assert np.abs(values - plain(lm, ids)).max() < 1e-4


def test_a_family_gptviz_does_not_know_runs_its_own_head():
    import dataclasses

    lm = LanguageModel("random-gpt2", *tiny_model("gpt2"))
    lm.spec = dataclasses.replace(lm.spec, family="other: gpt2")
    ids = list(lm.encode(SENTENCES[0]))
    assert np.abs(token_log_probabilities(lm, [ids], [1])[0] - plain(lm, ids)).max() < 1e-4


def test_equal_inputs_are_read_once():
    before = LM.forward_calls
    ids = list(LM.encode("it is very"))
    both = token_log_probabilities(LM, [ids + [5], ids + [9]], [len(ids)] * 2)
    assert LM.forward_calls == before + 1
    logp = torch.log_softmax(LM.logits(ids)[-1], -1)
    assert both[0][0] == pytest.approx(float(logp[5]), abs=1e-5) and both[1][0] == pytest.approx(float(logp[9]), abs=1e-5)


def test_scoring_stops_between_batches_and_reports_progress():
    texts = [list(LM.encode(s)) for s in SENTENCES]
    seen = []
    token_log_probabilities(LM, texts, [1] * 5, batch_tokens=1, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(n, 5) for n in range(1, 6)]
    with pytest.raises(Stopped):
        token_log_probabilities(LM, texts, [1] * 5, should_stop=lambda: True)
    with pytest.raises(ValueError, match="longer than the context of 128"):
        token_log_probabilities(LM, [[1] * 130], [1])
    with pytest.raises(ValueError, match="a scored token needs one before it"):
        token_log_probabilities(LM, [[1, 2]], [0])


def test_sentiment_compares_two_words_after_very():
    result = zero_shot(LM, "sentiment", [Classification("The film is fine .", "positive"), Classification("a bad day", "neg")])
    for example, verdict in zip(result.examples, result.verdicts, strict=True):
        totals = []
        for word in ("positive", "negative"):
            lead = len(LM.encode(example.text + " very"))
            ids = list(LM.encode(f"{example.text} very {word}"))
            totals.append(plain(LM, ids)[lead - 1 :].sum())
        assert verdict.score == pytest.approx(totals[0] - totals[1], abs=1e-4)
        assert verdict.prediction == ("positive" if totals[0] >= totals[1] else "negative")
        assert [c.total for c in verdict.candidates] == pytest.approx(totals, abs=1e-4)
        scored = verdict.candidates[0]
        assert "".join(scored.pieces[scored.first :]) == " positive" and len(scored.log_probabilities) == scored.n_scored
    assert [v.label for v in result.verdicts] == ["positive", "negative"]
    assert result.scores[0].metric == "accuracy" and result.scores[0].chance == 0.5


def test_acceptability_is_the_mean_log_probability_against_a_threshold():
    result = zero_shot(LM, "acceptability", SENTENCES, threshold=-6.0)
    for text, verdict in zip(SENTENCES, result.verdicts, strict=True):
        mean = plain(LM, list(LM.encode(text))).mean()
        assert verdict.score == pytest.approx(mean, abs=1e-4)
        assert verdict.prediction == ("acceptable" if mean >= -6.0 else "unacceptable")
    assert result.threshold_from == "given" and result.scores == ()
    free = zero_shot(LM, "acceptability", SENTENCES)
    assert free.threshold == pytest.approx(np.median([v.score for v in free.verdicts]))


def test_the_threshold_never_sees_the_half_it_judges():
    labels = ["acceptable", "unacceptable"] * 20
    examples = [Classification(f"{SENTENCES[n % 3]} {n}", label) for n, label in enumerate(labels)]
    result = zero_shot(LM, "acceptability", examples, seed=4)
    half = np.zeros(40, bool)
    half[np.random.default_rng(4).permutation(40)[:20]] = True
    values = np.array([v.score for v in result.verdicts])
    truth = np.array([label == "acceptable" for label in labels])
    for side in (half, ~half):
        t = best_threshold(values[~side], truth[~side])
        expected = ["acceptable" if v >= t else "unacceptable" for v in values[side]]
        assert [v.prediction for v, s in zip(result.verdicts, side, strict=True) if s] == expected
    assert [s.metric for s in result.scores] == ["Matthews correlation", "accuracy", "area under ROC"]
    assert abs(result.scores[0].value) < 0.6, "labels that mean nothing are not predicted"


def test_multiple_choice_takes_the_highest_mean_not_the_highest_sum():
    example = MultipleChoice("The mill hums.", "Why?", ["the wind", "because the wind turned and the sails began to move"], 0)
    (verdict,) = zero_shot(LM, "multiple_choice", [example]).verdicts
    means = []
    for choice in example.choices:
        lead = len(LM.encode("The mill hums. Why?"))
        means.append(plain(LM, list(LM.encode(f"The mill hums. Why? {choice}")))[lead - 1 :].mean())
    assert [c.mean for c in verdict.candidates] == pytest.approx(means, abs=1e-4)
    assert verdict.prediction == int(np.argmax(means))
    assert verdict.score == pytest.approx(max(means) - min(means), abs=1e-4)


def test_winograd_scores_only_what_follows_the_substituted_pronoun():
    example = MultipleChoice("The baker thanked the miller because _ was kind.", "", ["The baker", "the miller"], 1)
    (verdict,) = zero_shot(LM, "winograd", [example]).verdicts
    for scored in verdict.candidates:
        assert "".join(scored.pieces[scored.first :]) == " was kind."
        assert scored.log_probabilities == pytest.approx(plain(LM, list(LM.encode(scored.text)))[scored.first - 1 :], abs=1e-4)
    assert verdict.candidates[0].text == "The baker thanked the miller because the baker was kind."


@pytest.mark.parametrize(
    ("context", "question", "choices", "choice", "expected"),
    [
        ("Ann met Eve. _ smiled.", "", ("the girl", "Eve"), 0, "Ann met Eve. The girl smiled."),
        ("It fell on it and it broke.", 'What is "it"?', ("It", "it"), 1, "It fell on it and it broke."),
        ("A hen saw a bug and it ate it.", 'What does "it" refer to?', ("A hen", "a bug"), 0, "A hen saw a bug and a hen ate it."),
        ("Tom told Sam that his hat was on.", 'Who does "his" mean?', ("Tom", "Sam"), 0, "Tom told Sam that Tom's hat was on."),
        ("The cooks fed the boys their soup.", 'Who does "their" mean?', ("The cooks", "the boys"), 1,
         "The cooks fed the boys the boys' soup."),
        ("I said __ is big", "", ("A mill", "B"), 0, "I said a mill is big"),
    ],
)
def test_substitution_by_hand(context, question, choices, choice, expected):
    text, rest = substitute(MultipleChoice(context, question, choices), choices[choice])
    assert text == expected and text[rest:] == context[pronoun_span(MultipleChoice(context, question, choices))[1] :]


def test_every_winograd_sentence_of_the_real_sets_can_be_substituted(shared_dir):
    from gptviz.tasks.datasets import load_data

    for name, count in (("wsc273", 273), ("dpr", 564)):
        data = load_data(shared_dir / "tasks" / name, split="dev")
        rests = [substitute(e, c)[0][substitute(e, c)[1] :] for e in data.examples for c in e.choices]
        assert len(rests) == 2 * count and all(rest.strip() for rest in rests)


def test_a_context_longer_than_the_model_loses_its_beginning_not_its_answer():
    example = MultipleChoice("the old mill hums " * 60, "Why?", ["the wind", "the rain"])
    (verdict,) = zero_shot(LM, "multiple_choice", [example]).verdicts
    scored = verdict.candidates[0]
    assert scored.n_cut > 0 and len(scored.pieces) == LM.spec.n_ctx + 1
    assert "".join(scored.pieces[scored.first :]) == " the wind"


def test_one_example_or_many_give_the_same_numbers():
    examples = [Classification(s) for s in SENTENCES]
    together = zero_shot(LM, "sentiment", examples).verdicts
    for example, verdict in zip(examples, together, strict=True):
        assert zero_shot(LM, "sentiment", [example]).verdicts[0].score == pytest.approx(verdict.score, abs=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(str.strip))
def test_any_text_is_scored_or_refused_with_a_sentence(text):
    verdict = zero_shot(LM, "sentiment", [text]).verdicts[0]
    assert np.isfinite(verdict.score)
    try:
        assert np.isfinite(zero_shot(LM, "acceptability", [text]).verdicts[0].score)
    except ValueError as error:
        assert "too few tokens" in str(error)


@pytest.mark.parametrize(
    ("rule", "examples", "sentence"),
    [
        ("mood", ["a"], "rule 'mood' is unknown"),
        ("sentiment", [], "no example to score"),
        ("sentiment", [Classification("a", "fine")], "label 'fine'; the sentiment rule knows positive or negative"),
        ("sentiment", [Entailment("a", "b")], "example 0 is of type Entailment; the sentiment rule needs Classification"),
        ("winograd", ["text"], "needs MultipleChoice"),
        ("winograd", [MultipleChoice("no pronoun", "who?", ["a", "b"])], "mark the pronoun with _"),
        ("winograd", [MultipleChoice("no pronoun", 'who is "she"?', ["a", "b"])], "does not hold the pronoun 'she'"),
        ("winograd", [MultipleChoice("_ and _ met", "", ["a", "b"])], "has 2 blanks"),
        ("winograd", [MultipleChoice("They met _", "", ["a", "b"])], "nothing follows the pronoun"),
        ("multiple_choice", [MultipleChoice("a", "b", ["x " * 300, "y"])], "alone has"),
        ("acceptability", ["the"], "too few tokens"),
    ],
)
def test_wrong_input_gets_one_sentence(rule, examples, sentence):
    with pytest.raises(ValueError, match=sentence):
        zero_shot(LM, rule, examples)


def test_scores_by_hand():
    assert matthews(np.array([1, 1, 0, 0], bool), np.array([1, 1, 0, 0], bool)) == pytest.approx(1.0)
    assert matthews(np.array([1, 1, 1, 1], bool), np.array([1, 0, 1, 0], bool)) == 0.0
    assert area_under_roc(np.array([1.0, 1.0]), np.array([True, False])) == 0.5
    assert np.isnan(area_under_roc(np.array([1.0]), np.array([True])))
    assert best_threshold(np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, False, True, True])) == 2.5
    torchmetrics = pytest.importorskip("torchmetrics.functional.classification")
    rng = np.random.default_rng(0)
    predicted, actual, score = rng.random(200) > 0.4, rng.random(200) > 0.6, rng.random(200).round(1)
    assert matthews(predicted, actual) == pytest.approx(
        float(torchmetrics.binary_matthews_corrcoef(torch.tensor(predicted), torch.tensor(actual).long())), abs=1e-5
    )
    assert area_under_roc(score, actual) == pytest.approx(
        float(torchmetrics.binary_auroc(torch.tensor(score), torch.tensor(actual).long())), abs=1e-5
    )


def test_the_best_threshold_is_the_best_of_all():
    rng = np.random.default_rng(1)
    values, truth = rng.normal(size=60).round(1), rng.random(60) > 0.5
    best = matthews(values >= best_threshold(values, truth), truth)
    assert best == pytest.approx(max(matthews(values >= t, truth) for t in np.unique(values)))


def test_intervals_hold_the_value_and_shrink_with_more_examples():
    from gptviz.analysis.scores import accuracy_score

    few = accuracy_score([True, False, True, True] * 5, 0.5, list("abab") * 5)
    many = accuracy_score([True, False, True, True] * 100, 0.5, list("abab") * 100)
    assert few.low <= few.value == 0.75 <= few.high and few.majority == 0.5
    assert many.high - many.low < (few.high - few.low) / 3 and many.clear_of_chance
