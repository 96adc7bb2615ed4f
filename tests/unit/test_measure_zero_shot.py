"""The measuring command: records with their origin, replaced and not doubled, and one sentence for a wrong call."""

import json

import pytest

from gptviz.measure_zero_shot import main


@pytest.fixture
def reviews(tmp_path):
    folder = tmp_path / "reviews"
    folder.mkdir()
    rows = [{"text": f"day {n} was {'fine' if n % 2 else 'dull'}", "label": "positive" if n % 2 else "negative"} for n in range(12)]
    (folder / "dev.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def test_a_record_states_what_was_measured_how_and_when(reviews, tmp_path, capsys):
    out = tmp_path / "scores.json"
    call = ["--model", "random-gpt2", "--data", f"sentiment={reviews}", "--limit", "8", "--seed", "3", "--out", str(out)]
    assert main(call) == 0
    (record,) = json.loads(out.read_text())
    assert record["command"] == (
        "python -m gptviz zeroshot --model random-gpt2 --data sentiment=DIR/reviews --split dev --limit 8 --seed 3"
    )
    assert (record["n"], record["n_in_split"], record["data"], record["rule"], record["seed"]) == (8, 12, "reviews", "sentiment", 3)
    assert {"device", "date", "dtype", "torch"} <= record.keys() and str(tmp_path) not in out.read_text()
    assert record["scores"][0]["metric"] == "accuracy" and "random-gpt2 sentiment reviews n=8" in capsys.readouterr().out

    assert main(call) == 0
    assert [{k: v for k, v in r.items() if k != "seconds"} for r in json.loads(out.read_text())] == [
        {k: v for k, v in record.items() if k != "seconds"}
    ], "the same measurement replaces itself and gives the same numbers"
    assert main([*call, "--step", "100"]) == 0
    assert [r["step"] for r in json.loads(out.read_text())] == [None, 100]


@pytest.mark.parametrize(
    ("data", "sentence"), [("mood=x", "is not RULE=SET"), ("sentiment", "is not RULE=SET"), ("sentiment=none", "no data set or file")]
)
def test_a_wrong_call_gets_one_sentence(data, sentence, capsys):
    assert main(["--model", "random-gpt2", "--data", data]) == 2
    assert sentence in capsys.readouterr().err
