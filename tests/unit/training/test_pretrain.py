"""Pre-training: exact resume, reproducible losses, events, files that load."""

import json
import math
from dataclasses import asdict, replace

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from gptviz.models.lstm import register
from gptviz.training.perplexity import held_out
from gptviz.training.pretrain import pretrain, schedule
from gptviz.training.pretrain_config import PretrainConfig
from gptviz.types.training import TrainEvent

TEXTS = {
    f"tale {number}": " ".join(
        f"In house {number} lived {who} who had {count} hens and sold {count} eggs on day {count}." for count in range(40)
    )
    for number, who in enumerate(["a miller", "a smith", "two aunts"])
}
TINY = PretrainConfig(
    tokenizer="bpe", vocab_size=300, n_layer=2, d_model=16, n_head=2, n_ctx=16, batch_size=4, n_steps=12,
    warmup_steps=3, learning_rate=1e-2, dropout=0.1, log_every=1, valid_every=6, valid_windows=4, save_every=5,
    checkpoint_steps=(0, 6), sample_every=6, sample_prompt="In house", sample_tokens=5, seed=2,
)  # fmt: skip
FIRST_LOSSES = [5.6933, 5.6573, 5.5154, 5.3231, 5.1574, 4.9669]  # measured: one CPU thread, float32, without dropout


@pytest.fixture(autouse=True)
def one_thread():
    """Sums of floats are the same from run to run."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def losses(events: list[TrainEvent]) -> list[float]:
    return [event.values["loss"] for event in events if event.kind == "step"]


@pytest.mark.parametrize("architecture", ["gpt2", "gpt1", "lstm"])
def test_resumed_equals_unbroken(architecture, tmp_path):
    config = replace(TINY, architecture=architecture)
    whole = list(pretrain(config, tmp_path / "whole", texts=TEXTS))
    answers = iter([False] * 7 + [True])
    first = list(pretrain(config, tmp_path / "broken", texts=TEXTS, should_stop=lambda: next(answers)))
    assert first[-1].kind == "end"
    assert first[-1].step == 7
    torch.manual_seed(99)  # whatever the process did meanwhile
    second = list(pretrain(config, tmp_path / "broken", texts=TEXTS))
    assert losses(first) + losses(second) == losses(whole)
    for part in ("model", "optimizer"):
        a, b = (load_file(tmp_path / run / "resume" / f"{part}.safetensors") for run in ("whole", "broken"))
        assert a.keys() == b.keys()
        assert all(torch.equal(a[name], b[name]) for name in a), part


def test_killed_run_goes_on_from_its_last_save(tmp_path):
    whole = list(pretrain(TINY, tmp_path / "whole", texts=TEXTS))
    run = pretrain(TINY, tmp_path / "killed", texts=TEXTS)
    for event in run:
        if event.kind == "step" and event.step == 8:
            break
    run.close()
    second = list(pretrain(TINY, tmp_path / "killed", texts=TEXTS))
    assert [e.step for e in second if e.kind == "step"][0] == 6
    assert losses(second) == losses(whole)[5:]


def test_first_losses_are_the_stored_ones():
    run = pretrain(replace(TINY, dropout=0.0), texts=TEXTS)
    found = []
    for event in run:
        if event.kind == "step":
            found.append(event.values["loss"])
        if len(found) == len(FIRST_LOSSES):
            break
    assert found == pytest.approx(FIRST_LOSSES, abs=2e-3)


def test_seed_changes_the_losses_and_nothing_else_does():
    runs = [losses(list(pretrain(replace(TINY, seed=seed, n_steps=3), texts=TEXTS))) for seed in (2, 2, 3)]
    assert runs[0] == runs[1] != runs[2]


def test_events_tell_the_whole_run(tmp_path):
    events = list(pretrain(TINY, tmp_path, texts=TEXTS))
    kinds = [event.kind for event in events]
    assert kinds[:4] == ["stage", "stage", "stage", "start"]
    assert kinds.count("step") == 12
    assert [e.step for e in events if e.kind == "validation"] == [0, 6, 12, 12]
    assert [e.step for e in events if e.kind == "checkpoint"] == [0, 6]
    assert all(e.text.startswith("In house") for e in events if e.kind == "sample")
    end = events[-1]
    assert (end.kind, end.step, end.tokens, end.progress) == ("end", 12, 12 * 4 * 16, 1.0)
    last = events[-2].values
    assert last["valid_perplexity"] == pytest.approx(math.exp(last["valid_loss"]))
    assert last["valid_loss"] < events[4].values["valid_loss"] - 1, "nothing was learned"
    for event in events:
        assert TrainEvent.from_json(event.to_json()) == event


@pytest.mark.parametrize("architecture", ["gpt2", "lstm"])
def test_final_folder_loads_and_scores_as_the_run_said(architecture, tmp_path):
    register()
    config = replace(TINY, architecture=architecture, dtype="bfloat16")
    events = list(pretrain(config, tmp_path, texts=TEXTS))
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "final")
    assert model.dtype == torch.float16
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "final")
    from gptviz.training.corpus import hold_out, tokenize_books

    books = tokenize_books(hold_out(TEXTS)[1], tokenizer.backend_tokenizer)
    scores = held_out(model.float(), tokenizer.backend_tokenizer, books, config.n_ctx).values()
    assert scores["valid_loss"] == pytest.approx(events[-2].values["valid_loss"], abs=0.02)
    assert json.loads((tmp_path / "resume" / "state.json").read_text())["config"] == json.loads(
        json.dumps(asdict(config))
    )


def test_another_config_in_the_same_folder_is_refused(tmp_path):
    list(pretrain(TINY, tmp_path, texts=TEXTS))
    with pytest.raises(ValueError, match="differs in learning_rate"):
        list(pretrain(replace(TINY, learning_rate=1e-3), tmp_path, texts=TEXTS))


@pytest.mark.parametrize("kind", ["characters", "bytes"])
def test_other_tokenizers_train(kind):
    events = list(pretrain(replace(TINY, tokenizer=kind, n_steps=2), texts=TEXTS))
    assert events[-1].text == "Finished."


def test_mistakes_are_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="no corpus folder"):
        list(pretrain(replace(TINY, corpus=str(tmp_path / "none"))))
    with pytest.raises(ValueError, match="too short"):
        list(pretrain(TINY, texts={"a": "Hello there."}))
    with pytest.raises(ValueError, match="smaller learning rate"):
        list(pretrain(replace(TINY, learning_rate=1e30, warmup_steps=0), texts=TEXTS))


def test_schedule_rises_then_falls_to_nearly_nothing():
    rates = [schedule(step, 100, 10) for step in range(100)]
    assert rates[9] == 1.0
    assert rates.index(max(rates)) == 9
    assert rates[-1] < 0.001
    assert all(0 < rate <= 1 for rate in rates)
