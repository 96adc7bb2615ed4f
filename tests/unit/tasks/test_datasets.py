"""One loader for every source: files, uploads, folders, the hub's library; every bad row named by line and column."""

import json

import pytest

from gptviz.tasks import datasets as sets
from gptviz.tasks.datasets import data_sets, load_data, preview
from gptviz.tasks.tables import MAX_BYTES, read_table, sniff_delimiter
from gptviz.types.tasks import Classification, MultipleChoice, Similarity

REAL = ("cola", "sst2", "trec", "rte", "sick_entailment", "sick_relatedness", "mrpc", "stsb", "copa", "mctest", "dpr",
        "wsc273")


def csv_bytes(*lines):
    return "\n".join(lines).encode()


@pytest.mark.parametrize("name", REAL)
def test_the_real_sets_load_without_a_special_case(shared_dir, name):
    folder = shared_dir / "tasks"
    card = next(card for card in data_sets(folder) if card.name == name)
    for split, count in card.splits:
        data = load_data(folder / name, split=split)
        assert len(data) == count and data.form == card.form and data.licence == card.licence
        stated = json.loads((folder / "index.json").read_text())[name]["label_counts"].get(split)
        if stated:
            assert dict(data.label_counts) == stated
    assert data.is_score == (name in ("stsb", "sick_relatedness"))


def test_every_bundled_set_loads():
    cards = data_sets()
    if not cards:
        pytest.skip("no bundled set is there yet")
    for card in cards:
        for split, count in card.splits:
            assert len(load_data(card.name, split=split)) == count


def test_csv_with_mapped_columns_and_quoted_lines():
    content = csv_bytes("id,review,stars", '1,"Long, but\ngood",up', "2,dull,down", "", "3,fine,up")
    data = load_data("reviews.csv", content=content, columns={"text": "review", "label": "stars"})
    assert data.examples[0] == Classification("Long, but\ngood", "up")
    assert data.label_counts == (("up", 2), ("down", 1)) and data.labels == ("down", "up") and data.n_outputs == 2


def test_the_line_of_a_problem_counts_lines_of_the_file_not_rows():
    content = csv_bytes("text,label", '"two\nlines",a', "", "missing label,", "ok,b")
    with pytest.raises(ValueError, match=r'^Line 5, column "label": the label is empty; every row needs one\.$'):
        load_data("x.csv", content=content)
    data = load_data("x.csv", content=content, skip_bad=True)
    assert len(data) == 2 and [p.line for p in data.problems] == [5]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.csv", csv_bytes("text,label", "good,yes", "a, b,no"), 'Line 3, column "label": 3 cells where the header has 2'),
        ("x.csv", csv_bytes("text,label", "good"), 'Line 2, column "label": 1 cell where the header has 2'),
        ("x.csv", csv_bytes("text,label", "good,yes", ",no"), 'Line 3, column "text": empty'),
        ("x.csv", csv_bytes("text,label", 'good,"yes', "bad,no"), "Line 2, .*never closed"),
        ("x.csv", csv_bytes("text,text,label", "a,b,c"), 'column "text": this name stands twice'),
        ("x.csv", csv_bytes("body,label", "good,yes"), "no task form fits the columns body, label"),
        ("x.csv", b"text,label\n", "no row below it"),
        ("x.csv", b"  \n", "is empty"),
        ("x.csv", b"text,label\na\x00b,c\n", "null byte on line 2"),
        ("x.xlsx", b"PK\x03\x04 rest", "an Excel workbook or a zip archive"),
        ("x.csv", b"\xff\xfet\x00e\x00x", "save it again as UTF-8"),
        ("x.jsonl", b'{"text": "a", "label": "b"}\n{"text": }\n', "Line 2, column 10: not JSON"),
        ("x.jsonl", b'["a", "b"]\n', "Line 1, column 1: not a JSON object"),
        ("x.jsonl", b'{"text": ["a"], "label": "b"}\n', 'Line 1, column "text": holds list, not a text'),
        ("x.jsonl", b'{"text": "a \\ud800", "label": "b"}\n', 'Line 1, column "text": has half a character'),
        ("x.jsonl", b'{"text": "a", "label": {"b": 1}}\n', 'column "label": the label is a dict'),
        ("x.jsonl", b'{"text_a": "a", "text_b": "b", "label": 1e999}\n', 'column "label": score inf is not finite'),
        ("x.jsonl", b'{"text": "a", "label": ' + b"1" * 5000 + b"}\n", "Line 1, .*not JSON"),
    ],
)
def test_a_bad_file_gets_one_sentence(name, content, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        load_data(name, content=content)
    assert "\n" not in str(caught.value)


def test_a_missing_mapped_column_is_named_with_what_the_file_has():
    with pytest.raises(ValueError, match='Line 1, column "reviews": not found; the file has the columns review, stars'):
        load_data("x.csv", content=b"review,stars\na,b\n", columns={"text": "reviews", "label": "stars"}, form="classification")
    with pytest.raises(ValueError, match="classification has no field 'premise'"):
        load_data("x.csv", content=b"text,label\na,b\n", columns={"premise": "text"}, form="classification")


def test_choices_come_from_columns_lists_or_bars_and_labels_from_index_letter_or_text():
    lines = ("context,question,a,b,right", "The mill,Why?,wind,rain,1", "The mill,Why?,wind,rain,A", "The mill,,wind,rain,rain")
    columns = {"choices": ["a", "b"], "label": "right"}
    data = load_data("x.csv", content=csv_bytes(*lines), columns=columns)
    assert [e.label for e in data.examples] == [1, 0, 1]
    assert data.examples[2] == MultipleChoice("The mill", "", ("wind", "rain"), 1)
    bars = load_data("x.tsv", content=b"context\tchoices\tlabel\nThe mill\twind | rain\t0\n")
    as_list = load_data("x.tsv", content=b'context\tchoices\tlabel\nThe mill\t["wind", "rain"]\t0\n')
    assert bars.examples == as_list.examples
    with pytest.raises(ValueError, match='Line 2, column "right": label \'2\' names no choice; use 0 to 1'):
        load_data("x.csv", content=csv_bytes(lines[0], "The mill,Why?,wind,rain,2"), columns=columns)


def test_similarity_is_scores_or_classes_and_names_the_odd_one():
    scores = load_data("x.csv", content=b"text_a,text_b,label\na,b,4\nc,d,2.5\n")
    assert scores.is_score and scores.examples[1] == Similarity("c", "d", 2.5) and scores.n_outputs == 1
    classes = load_data("x.csv", content=b"text_a,text_b,label\na,b,same\nc,d,other\n")
    assert classes.labels == ("other", "same") and not classes.is_score
    with pytest.raises(ValueError, match='Line 3, column "label": label \'high\' should be a number'):
        load_data("x.csv", content=b"text_a,text_b,label\na,b,4\nc,d,high\ne,f,1\n")


def test_encodings_and_delimiters_are_found():
    text = "text;label\ncafé, très bon;oui\nmauvais;non\n"
    assert load_data("x.csv", content=text.encode()).examples[0].text == "café, très bon"
    assert load_data("x.csv", content=text.encode("utf-16")).examples[0].text == "café, très bon"
    assert load_data("x.csv", content=b"\xef\xbb\xbf" + text.encode()).examples[0].label == "oui"
    windows = load_data("x.csv", content=text.encode("cp1252"))
    assert windows.examples[0].text == "café, très bon" and "line 2" in windows.notes[0]
    assert sniff_delimiter("a\tb\nhello, you, there\tx\n") == "\t"


def test_text_is_data():
    odd = ["<script>alert(1)</script>", "$x$ **b**", "مرحبا", "สวัสดี", "😀👍🏽", "  kept  "]
    content = "\n".join(json.dumps({"text": t, "label": "x"}) for t in odd).encode()
    assert [e.text for e in load_data("x.jsonl", content=content).examples] == odd


def test_limits(tmp_path):
    with pytest.raises(ValueError, match="the limit is 20 MB"):
        read_table("x.csv", b"a" * (MAX_BYTES + 1))
    big = tmp_path / "big.csv"
    with big.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ValueError, match=r"big.csv has 20 MB; the limit is 20 MB"):
        load_data(big)
    rows = b"text,label\n" + b"a,b\n" * 100_002
    many = load_data("x.csv", content=rows)
    assert len(many) == 100_000 and many.notes == ("Only the first 100,000 rows are used.",)
    assert len(load_data("x.csv", content=rows, limit=3)) == 3
    with pytest.raises(ValueError, match="limit 0"):
        load_data("x.csv", content=rows, limit=0)


def test_unlabelled_rows_are_allowed_when_asked():
    content = b"text\ngood, in one column\n"
    assert load_data("x.csv", content=content, labelled=False).examples == (Classification("good, in one column"),)
    with pytest.raises(ValueError, match='column "label": not found'):
        load_data("x.csv", content=b"text\ngood\n")


def test_preview_shows_the_file_as_it_is():
    table = preview("x.csv", content=b"body,stars\nfine,5\nbad,1\n", limit=1)
    assert table.columns == ("body", "stars") and [r.values for r in table.rows] == [{"body": "fine", "stars": "5"}]


def test_an_unknown_set_or_split_names_what_there_is(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"text": "a", "label": "b"}\n')
    assert len(load_data(tmp_path)) == 1
    with pytest.raises(ValueError, match="has no split 'test'; it has train"):
        load_data(tmp_path, split="test")
    with pytest.raises(ValueError, match="no data set or file named 'nothing-here'"):
        load_data("nothing-here")


def test_the_hub_library_reads_a_local_set_and_names_its_classes(tmp_path, monkeypatch):
    hub = pytest.importorskip("datasets")
    features = hub.Features({"text": hub.Value("string"), "label": hub.ClassLabel(names=["no", "yes"])})
    rows = hub.Dataset.from_dict({"text": ["a fine day", "a dull day"], "label": [1, 0]}, features=features)
    rows.to_parquet(str(tmp_path / "train.parquet"))
    monkeypatch.setenv("GPTVIZ_OFFLINE", "1")
    data = load_data(f"hub:{tmp_path}")
    assert data.examples == (Classification("a fine day", "yes"), Classification("a dull day", "no"))


def test_offline_says_so_instead_of_waiting(monkeypatch):
    monkeypatch.setenv("GPTVIZ_OFFLINE", "1")
    with pytest.raises(ValueError, match="GPTVIZ_OFFLINE is set; load a file instead"):
        load_data("hub:nyu-mll/glue/rte")


def test_set_cards_state_form_and_licence(tmp_path):
    (tmp_path / "index.json").write_text(json.dumps({"tiny": {"form": "multiple choice", "counts": {"dev": 2}, "licence": "CC0"}}))
    (card,) = data_sets(tmp_path)
    assert (card.name, card.form, card.splits, card.licence) == ("tiny", "multiple_choice", (("dev", 2),), "CC0")
    assert sets.data_sets(tmp_path / "none") == ()
