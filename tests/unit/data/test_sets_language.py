"""The bundled sets reviews, entailment, acceptability and winograd keep the promises of their data cards."""

import collections
import json
import re
import unicodedata
from pathlib import Path

import pytest

import gptviz
from gptviz.tasks.datasets import load_data

SETS = Path(gptviz.__file__).parent / "data" / "sets"
LABELLED = [(name, split) for name in ("reviews", "entailment") for split in ("train", "dev")]
FIELDS = {"reviews": ("text",), "entailment": ("premise", "hypothesis")}
LABELS = {"reviews": {"negative", "positive"}, "entailment": {"entailment", "neutral", "contradiction"}}
FILES = [(name, split) for name, split in LABELLED] + [("acceptability", "pairs"), ("winograd", "dev")]
NEGATION = re.compile(r"\b(no|not|never|nobody|nothing|none|neither|nor|without|cannot)\b|n't")


def read(name: str, split: str) -> list[dict]:
    lines = (SETS / name / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def text_of(name: str, row: dict) -> str:
    return " ".join(row[field] for field in FIELDS[name])


def strings(row: dict) -> list[str]:
    return [text for value in row.values() for text in (value if isinstance(value, list) else [value])
            if isinstance(text, str)]


@pytest.mark.parametrize("name, split", FILES)
def test_strings_are_clean(name, split):
    for row in read(name, split):
        for text in strings(row):
            assert text == text.strip() and "  " not in text and text, row
            assert not any(unicodedata.category(char).startswith("C") for char in text), row
            assert unicodedata.normalize("NFC", text) == text, row


@pytest.mark.parametrize("name, split", LABELLED)
def test_fields_labels_and_balance(name, split):
    rows = read(name, split)
    assert len(rows) >= {"train": 400, "dev": 200}[split]
    assert all(tuple(row) == (*FIELDS[name], "label") for row in rows)
    counts = collections.Counter(row["label"] for row in rows)
    assert set(counts) == LABELS[name]
    assert len(set(counts.values())) == 1, counts


@pytest.mark.parametrize("name", FIELDS)
def test_no_text_twice_and_none_shared_by_train_and_dev(name):
    bags = {split: [words(text_of(name, row)) for row in read(name, split)] for split in ("train", "dev")}
    everything = [tuple(bag) for split in bags.values() for bag in split]
    assert len(set(everything)) == len(everything)
    for left in map(frozenset, bags["train"]):
        for right in map(frozenset, bags["dev"]):
            assert len(left & right) <= 0.5 * len(left | right), (sorted(left), sorted(right))


def test_reviews_are_not_near_duplicates_and_are_sentences():
    rows = read("reviews", "train") + read("reviews", "dev")
    bags = [frozenset(words(row["text"])) for row in rows]
    for i, left in enumerate(bags):
        for right in bags[:i]:
            assert len(left & right) <= 0.7 * len(left | right), (sorted(left), sorted(right))
    for row in rows:
        assert 5 <= len(row["text"].split()) <= 35, row
        assert row["text"][-1] in ".?!", row


@pytest.mark.parametrize("name", FIELDS)
def test_openings_are_varied(name):
    field = FIELDS[name][-1]
    openings = collections.Counter(
        tuple(words(row[field])[:3]) for split in ("train", "dev") for row in read(name, split))
    opening, count = openings.most_common(1)[0]
    assert count <= 8, opening


@pytest.mark.parametrize("split", ["train", "dev"])
def test_each_premise_has_one_hypothesis_of_each_label(split):
    labels = collections.defaultdict(list)
    for row in read("entailment", split):
        labels[row["premise"]].append(row["label"])
        assert row["premise"][-1] in ".?!" and row["hypothesis"][-1] in ".?!", row
    assert all(sorted(found) == sorted(LABELS["entailment"]) for found in labels.values())


def test_premises_of_train_and_dev_differ():
    train, dev = ({row["premise"] for row in read("entailment", split)} for split in ("train", "dev"))
    for left in train:
        for right in dev:
            a, b = set(words(left)), set(words(right))
            assert len(a & b) <= 0.5 * len(a | b), (left, right)


@pytest.mark.parametrize("split", ["train", "dev"])
def test_neither_negation_nor_length_of_the_hypothesis_gives_the_label_away(split):
    rows = read("entailment", split)
    negated = collections.Counter(row["label"] for row in rows if NEGATION.search(row["hypothesis"].lower()))
    assert set(negated) == LABELS["entailment"]
    assert max(negated.values()) <= 1.5 * min(negated.values()), negated
    lengths = collections.defaultdict(list)
    for row in rows:
        lengths[row["label"]].append(len(row["hypothesis"].split()))
    means = {label: sum(found) / len(found) for label, found in lengths.items()}
    assert max(means.values()) - min(means.values()) < 1.5, means


def test_acceptability_pairs_are_minimal_and_cover_the_phenomena():
    rows = read("acceptability", "pairs")
    assert len(rows) == 60
    assert all(tuple(row) == ("acceptable", "unacceptable", "phenomenon") for row in rows)
    assert len({row["phenomenon"] for row in rows}) >= 10
    sentences = [row[side] for row in rows for side in ("acceptable", "unacceptable")]
    assert len(set(sentences)) == len(sentences)
    for row in rows:
        left, right = words(row["acceptable"]), words(row["unacceptable"])
        shared = collections.Counter(left) & collections.Counter(right)
        assert shared.total() >= 0.5 * max(len(left), len(right)), row
    single = [(row["text"], row["label"], row["phenomenon"]) for row in read("acceptability", "dev")]
    paired = [(row[side], side, row["phenomenon"]) for row in rows for side in ("acceptable", "unacceptable")]
    assert sorted(single) == sorted(paired)


def test_winograd_twins_differ_in_a_phrase_and_in_the_answer():
    rows = read("winograd", "dev")
    assert len(rows) == 60
    assert all(tuple(row) == ("context", "choices", "label") for row in rows)
    assert len({row["context"] for row in rows}) == len(rows)
    assert collections.Counter(row["label"] for row in rows) == {0: 30, 1: 30}
    for row in rows:
        assert row["context"].count("_") == 1 and len(set(row["choices"])) == 2, row
        for choice in row["choices"]:
            named = words(choice)[-1]
            assert named in words(row["context"]), row
    for left, right in zip(rows[::2], rows[1::2], strict=True):
        assert left["choices"] == right["choices"] and left["label"] != right["label"]
        start = len(left["context"].split("_")[0])
        assert left["context"][: start + 1] == right["context"][: start + 1]


@pytest.mark.parametrize("name", [*FIELDS, "acceptability", "winograd"])
def test_data_card_and_index_tell_the_counts(name):
    card = (SETS / name / "README.md").read_text(encoding="utf-8")
    assert "CC0 1.0" in card and "Limits" in card
    entry = json.loads((SETS / "index.json").read_text(encoding="utf-8"))[name]
    splits = sorted(path.stem for path in (SETS / name).glob("*.jsonl") if path.stem != "pairs")
    assert entry["counts"] == {split: len(read(name, split)) for split in splits}
    assert entry["fields"] == list(read(name, splits[0])[0])
    assert entry["licence"] == "CC0 1.0"
    if name in LABELS:
        assert set(entry["labels"]) == LABELS[name]
    for split in splits:
        data = load_data(name, split=split)
        assert len(data.examples) == entry["counts"][split] and data.form == entry["form"].replace(" ", "_")
