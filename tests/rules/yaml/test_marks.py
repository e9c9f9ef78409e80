"""Every character of a scalar is found again in the YAML text, however the scalar is written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tidegate.rules.yaml.reader import Fields, Scalar, read_yaml

texts = st.text(alphabet="ab'\"\\#:é ", min_size=1, max_size=20)


def scalar(yaml: str) -> Scalar:
    top, problems = read_yaml(yaml, "f.yaml", 10**6)
    assert not problems
    assert isinstance(top, Fields)
    node = top.entries["k"]
    assert isinstance(node, Scalar)
    return node


@example_count(200)
@given(texts)
def test_quoted(text: str) -> None:
    single = "k: '" + text.replace("'", "''") + "'\n"
    double = "k: " + json.dumps(text, ensure_ascii=False) + "\n"
    for yaml in (single, double):
        node = scalar(yaml)
        assert node.text == text
        for offset, character in enumerate(text):
            place = node.locate(offset)
            found = yaml.splitlines()[place.line - 1][place.column - 1 :]
            assert found[0] == character or found[:2] == "\\" + character


@pytest.mark.parametrize(
    "yaml",
    [
        "k: one two three\n",
        "k: one\n   two\n   three\n",
        "k: |\n    one\n\n    two\n  \n    three\n",
        "k: >-\n  one\n  two\n\n  three\n",
        "k: |2\n    one\n   two three\n",
        'k: "one \\\n    two\n    three"\n',
        "k: 'one\n  two\n\n  three'\n",
        "{k: one two\n three}\n",
        "# comment\n\nk:   one two three # more\n",
    ],
)
def test_words_in_every_style(yaml: str) -> None:
    node = scalar(yaml)
    lines = yaml.splitlines()
    for word in ("one", "two", "three"):
        place = node.locate(node.text.index(word))
        assert lines[place.line - 1][place.column - 1 :].startswith(word)


def test_the_end_of_a_text_is_behind_its_last_character() -> None:
    node = scalar("k: 'a or '\n")
    assert node.locate(len(node.text)).column == 10


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("true", True),
        ("'true'", "true"),
        ("null", None),
        ("~", None),
        ("12", 12),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("1.5", 1.5),
        ("-1e3", -1000.0),
        ("-.inf", float("-inf")),
        ("2026-12-25", "2026-12-25"),
        ("08:00", "08:00"),
        ("1:30", "1:30"),
    ],
)
def test_core_schema(written: str, value: object) -> None:
    found = scalar(f"k: {written}\n").value
    assert found == value
    assert type(found) is type(value)
