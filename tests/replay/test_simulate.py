"""`simulate`: its output, its order, its errors (`language.md` 4)."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import cases
from tests.reference.strategies import FIRST_SLICE, answered
from tests.replay.traces import simulated
from tidegate.engine.replay import lines
from tidegate.engine.replay import trace as traces
from tidegate.engine.replay.simulate import simulate
from tidegate.rules.errors import InputError

BOOK = """
rulebook: bank
events:
  withdrawal: {signal: {account: bigint, amount: double}}
  alarm: {signal: {account: bigint}}
rules:
  pair: {on: withdrawal ; alarm, per: account}
  each: {on: withdrawal}
  off: {on: alarm, enabled: false}
"""
TABLES = BOOK.replace("events:", "tables: {t: {path: /t}}\nevents:")  # whose columns are unknown
TABLES = TABLES.replace("signal: {account: bigint, amount: double}", "on: insert, table: t")
TABLES = TABLES.replace("signal: {account: bigint}", "on: delete, table: t")
ONE = """
rulebook: one
events: {withdrawal: {signal: {amount: double}}}
rules: {each: {on: withdrawal}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("simulate")


def lines_of(folder: Path, trace: str, book: str = BOOK, **options: Any) -> list[str]:
    (folder / "trace.jsonl").write_text(trace)
    return read_lines(folder, book, **options)


def read_lines(folder: Path, book: str = BOOK, **options: Any) -> list[str]:
    """What is printed for the trace that stands in the folder."""
    (folder / "book.yaml").write_text(book)
    out = io.BytesIO()
    simulate(folder / "book.yaml", folder / "trace.jsonl", out=out, **options)
    return out.getvalue().decode().splitlines()


def refused(folder: Path, trace: str, **options: Any) -> str:
    with pytest.raises(InputError) as error:
        lines_of(folder, trace, **options)
    return str(error.value)


@detecting
@given(data=st.data())
@example_count(50)
def test_output_is_the_reference_s_line_by_line_for_any_bucket(
    data: st.DataObject, folder: Path
) -> None:
    book, history = data.draw(cases(operators=FIRST_SLICE, rules_max=1, depth=2))
    second = replace(book.rules["r0"], name="q")
    book = replace(book, rules={**book.rules, "q": second})
    expected = saw([d.printed() for d in answered(book, history)])
    for bucket in (None, 1, 2):
        assert simulated(book, history, folder, bucket) == expected


def test_a_detection_is_printed_as_the_language_says(folder: Path) -> None:
    trace = (
        '{"event": "withdrawal", "account": 7, "time": 3, "amount": 50.00, "note": "ä"}\n'
        '{"time": 4.25, "event": "alarm", "account": 7}\n'
    )
    assert lines_of(folder, trace) == [
        '{"rule":"each","key":{},"start":3,"end":3,"constituents":['
        '{"event":"withdrawal","time":3,"account":7,"amount":50.00,"note":"ä"}]}',
        '{"rule":"pair","key":{"account":7},"start":3,"end":4.25,"constituents":['
        '{"event":"withdrawal","time":3,"account":7,"amount":50.00,"note":"ä"},'
        '{"event":"alarm","time":4.25,"account":7}]}',
    ]


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | st.text(st.sampled_from('ab:, "\\\\{}[]é\\n'), max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("k:", max_size=2), inner),
    max_leaves=4,
)

_AMOUNTS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
_FIELDS = st.dictionaries(st.sampled_from(["z", "a b", "ü"]), _VALUES) | st.fixed_dictionaries(
    {"amount": _AMOUNTS, "a b": _VALUES}, optional={"ü": _VALUES}
)


@given(
    lines=st.lists(
        st.tuples(_FIELDS, st.booleans()),
        min_size=1,
        max_size=4,
    ),
    compact=st.booleans(),
    escaped=st.booleans(),
)
@example_count(150)
def test_the_fields_of_a_constituent_are_those_of_its_line(
    lines: list[tuple[dict[str, Any], bool]], compact: bool, escaped: bool, folder: Path
) -> None:
    separators = (",", ":") if compact else (", ", ": ")
    trace = []
    for time, (fields, first) in enumerate(lines):
        head = {"event": "withdrawal", "time": time}
        line = {**head, **fields} if first else {**fields, **head}
        trace.append(json.dumps(line, separators=separators, ensure_ascii=escaped))
    for (fields, _), line in zip(lines, lines_of(folder, "\n".join(trace), ONE), strict=True):
        (constituent,) = json.loads(line)["constituents"]
        del constituent["event"], constituent["time"]
        assert list(constituent.items()) == list(({**fields, "amount": None} | fields).items())


def test_numbers_are_printed_as_they_are_written(folder: Path) -> None:
    numbers = '"a":1.50,"b":1e3,"c":-0.0,"d":123456789012345678901234567890,"e":{"f":[2.00]}'
    (line,) = lines_of(folder, '{"event":"withdrawal","time":1,"amount":0.10,' + numbers + "}", ONE)
    assert line.endswith(f'"amount":0.10,{numbers}}}]}}')


def test_missing_fields_are_null_and_null_is_a_key(folder: Path) -> None:
    found = lines_of(folder, '{"event":"withdrawal","time":1}\n{"event":"alarm","time":2}')
    pair = json.loads(found[1])
    assert pair["key"] == {"account": None}
    assert pair["constituents"][0] == {
        "event": "withdrawal",
        "time": 1,
        "account": None,
        "amount": None,
    }


def test_equal_numbers_are_one_key_and_other_kinds_are_not(folder: Path) -> None:
    trace = "".join(
        f'{{"event":"{event}","time":{time},"account":{account}}}\n'
        for event, time, account in [
            ("withdrawal", 1, "7"),
            ("withdrawal", 2, '"7"'),
            ("withdrawal", 3, "true"),
            ("alarm", 4, "7.0"),
            ("alarm", 4, "true"),
            ("alarm", 4, '"7"'),
            ("alarm", 4, "1"),
        ]
    )
    found = [json.loads(line) for line in lines_of(folder, trace, TABLES)]
    pairs = [(d["key"]["account"], d["start"]) for d in found if d["rule"] == "pair"]
    assert pairs == [(True, 3), (7, 1), ("7", 2)]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("3", "3"),
        ("3.0", "3"),
        ("0.1", "0.1"),
        ("0.0000005", "0"),
        ("0.0000015", "0.000002"),
        ("1700000000.1234565", "1700000000.123456"),
        ("-1.5", "-1.5"),
        ("1e3", "1000"),
        ('"2026-03-02T09:00:00"', '"2026-03-02T09:00:00Z"'),
        ('"2026-03-02T09:00:00.5+01:00"', '"2026-03-02T08:00:00.500000Z"'),
    ],
)
def test_times_are_rounded_half_even_and_printed_shortest(
    folder: Path, written: str, shown: str
) -> None:
    (line,) = lines_of(folder, f'{{"event":"withdrawal","time":{written}}}')
    assert f'"start":{shown},"end":{shown},' in line


def test_an_unordered_trace_of_many_chunks_is_sorted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", 100)
    monkeypatch.setattr(traces, "CHUNK_LINES", 8)
    monkeypatch.setattr(traces, "PIECES", 3)
    kept: list[int] = []
    add = traces.Spool.add

    def counted(self: traces.Spool, table: pa.Table) -> None:
        kept.append(len(table))
        add(self, table)

    monkeypatch.setattr(traces.Spool, "add", counted)
    times = [(i * 37) % 50 for i in range(100)]
    trace = "".join(f'{{"event":"withdrawal","time":{t},"amount":{t}}}\n' for t in times)
    found = [json.loads(line) for line in lines_of(folder, trace)]
    assert [d["end"] for d in found] == sorted(times)
    assert len(kept) > 5
    assert sum(kept) == len(times)


def test_keys_of_other_kinds_in_other_chunks_are_the_same_keys(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", 60)
    monkeypatch.setattr(traces, "CHUNK_LINES", 2)
    keys = ["1", '"x"', "1.0", "null", "2.5", '{"a":1}', "true", "1e30"]
    trace = "".join(
        f'{{"event":"{event}","time":{time},"account":{key}}}\n'
        for time, event in enumerate(["withdrawal", "alarm"])
        for key in keys
    )
    found = [json.loads(line) for line in lines_of(folder, trace, TABLES)]
    shown = [d["key"]["account"] for d in found if d["rule"] == "pair"]
    assert shown == [None, True, 1, 2.5, float(keys[-1]), "x", {"a": 1}]


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_a_key_has_64_bits(folder: Path, number: int) -> None:
    line = f'{{"event": "alarm", "time": 1, "account": {number}}}\n'
    wrong = f"trace.jsonl:1:1: account: {number} has more than 64 bits"
    assert wrong in refused(folder, line, book=TABLES)
    assert f"is to be bigint, but is {number}\n" in refused(folder, line)


def test_until_is_inclusive(folder: Path) -> None:
    trace = "".join(f'{{"event":"withdrawal","time":{t}}}\n' for t in (1, 2, 3))
    assert len(lines_of(folder, trace, until="2")) == 2


@pytest.mark.parametrize("bucket", [None, 1])
def test_a_clock_goes_on_to_until_each_instant_once(folder: Path, bucket: int | None) -> None:
    """A line at noon, one an hour later; the next noon is after both."""
    book = """
rulebook: noons
events: {noon: {at: "<(12:00:00)*/*/*>", timezone: UTC}, a: {signal: {}}}
rules: {told: {on: noon}, after: {on: a ; noon, context: chronicle}}
"""
    trace = "".join(json.dumps({"event": "a", "time": at}) + "\n" for at in (43_200, 46_800))
    found = map(json.loads, lines_of(folder, trace, book, until="130000", bucket=bucket))
    assert [(each["rule"], each["end"]) for each in found] == [
        *(("told", 43_200), ("after", 129_600), ("told", 129_600)),
    ]


def test_an_empty_trace_prints_nothing(folder: Path) -> None:
    assert lines_of(folder, "\n") == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"event": "withdrawl", "time": 1}', "unknown event 'withdrawl'"),
        ('{"event": "withdrawl", "time": 1}', "did you mean 'withdrawal'?"),
        ('{"event": "pair", "time": 1}', "pair is a rule"),
        ('{"time": 1}', "the line has no event"),
        ('{"event": "alarm"}', "the line has no time"),
        ('{"event": "alarm", "time": true}', "the line has no time"),
        ('{"event": "alarm", "time": 1e30}', "no instant"),
        ('{"event": "alarm", "time": "2026-03-02"}', "either numbers or ISO 8601"),
        ('{"event": "alarm", ', "trace.jsonl:2:19: no JSON: unexpected end of data"),
        ('[{"event": "alarm", "time": 1},', "write an object a line, without [ ]"),
        ('{"event": "alarm", "time": 1},', "without commas between them"),
        ("{'event': 'alarm', 'time': 1}", "in double quotes"),
        ('{"event": "alarm", "time": 1, "account": NaN}', 'write "NaN", "Infinity"'),
        ('{"event": "alarm", "time": "17"}', "'17' is no instant\n    write 2026-01-01T09:00:00Z"),
        ('{"event": null, "time": 1}', "the event of the line is null, not a text"),
        ("[]", "one JSON object"),
    ],
)
def test_a_wrong_line_is_refused_with_its_place(folder: Path, line: str, said: str) -> None:
    before = "" if '"time": "' in line and said.startswith("'") else '{"event":"alarm","time":1}'
    message = refused(folder, f"{before}\n{line}\n")
    assert said in message
    assert f"{folder / 'trace.jsonl'}:2:" in message


def test_a_trace_in_another_encoding_is_refused_as_that(folder: Path) -> None:
    """A byte order mark of UTF-8 is none; an editor may have written it."""
    line = '{"event":"alarm","time":1}\n'
    said = {}
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        (folder / "trace.jsonl").write_text(line, encoding=encoding)
        try:
            read_lines(folder)
        except InputError as error:
            said[encoding] = str(error.problems[0]).split("trace.jsonl:")[1]
    assert said == {"utf-16": "1:1: no UTF-8\n    save the trace as UTF-8, unpacked"}


def test_a_trace_may_come_through_a_pipe(folder: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b'{"event":"withdrawal","time":1,"account":7}\n')
    os.close(writing)
    (folder / "book.yaml").write_text(BOOK)
    out = io.BytesIO()
    simulate(folder / "book.yaml", Path(f"/dev/fd/{reading}"), out=out)
    os.close(reading)
    assert out.getvalue()


def test_all_wrong_lines_are_said_at_once_and_nothing_is_printed(folder: Path) -> None:
    message = refused(folder, '{"event":"withdrawal","time":1}\n{\n{"time":1}\n')
    assert "trace.jsonl:2:" in message
    assert "trace.jsonl:3:" in message


def test_a_trace_that_is_not_there_is_refused(folder: Path) -> None:
    (folder / "book.yaml").write_text(BOOK)
    with pytest.raises(InputError, match="cannot be read"):
        simulate(folder / "book.yaml", folder / "none.jsonl", out=io.BytesIO())


def test_wrong_options_are_refused(folder: Path) -> None:
    assert "known: chronicle" in refused(folder, "", context="xyz")
    said = refused(folder, "", until="tomorrow").splitlines()
    assert said[0] == "--until: 'tomorrow' is no instant"
    assert said[1].strip().startswith("write 2026-01-01T09:00:00Z, or the seconds since 1970")


def test_a_number_that_reads_like_a_date_is_no_end_of_a_trace_with_texts(folder: Path) -> None:
    line = '{"event": "withdrawal", "time": %s}\n'
    said = refused(folder, line % '"2026-03-01T09:00:00"', until="20260302")
    assert said.startswith("--until: '20260302' reads like a date, but a number alone is seconds")
    assert len(lines_of(folder, line % 20_260_301, until="20260302")) == 1


MAPPED = """
rulebook: one
tables: {t: {path: /t}}
events: {a: {signal: {k: bigint}}, b: {on: insert, table: t}, c: {signal: {z: double}}}
rules:
  r: {on: a and b, per: {a: k, b: x}}
  s: {on: r ; c, per: {r: k, c: z}}
"""


@pytest.mark.parametrize("bucket", [None, 1, 2])
def test_keys_in_fields_of_other_names_are_compared_by_value(
    bucket: int | None, tmp_path: Path
) -> None:
    """7 and 7.0 are one key, 7 and "7" two."""
    values = [("a", "k", 7), ("b", "x", "7"), ("b", "x", 7.0), ("a", "k", None), ("c", "z", 7.0)]
    values += [("a", "k", 2**53 + 1), ("b", "x", 2.0**53), ("a", "k", 0), ("b", "x", -0.0)]
    (tmp_path / "one.yaml").write_text(MAPPED)
    (tmp_path / "trace.jsonl").write_text(
        "".join(
            json.dumps({"event": event, "time": time, field: value}) + "\n"
            for time, (event, field, value) in enumerate(values)
        )
    )
    out = io.BytesIO()
    simulate(tmp_path / "one.yaml", tmp_path / "trace.jsonl", bucket=bucket, out=out)
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(d["rule"], d["key"], d["start"], d["end"]) for d in found] == [
        ("r", {"k": 7}, 0, 2),
        ("s", {"k": 7}, 0, 4),
        ("r", {"k": 0}, 7, 8),
    ]


def test_a_name_twice_and_deep_nesting_are_refused_by_line(folder: Path) -> None:
    """A reader would keep the last of them; a printer would stumble."""
    deep = {
        n: '{"event": "alarm", "time": 1, "x": ' + "[" * n + "]" * n + "}\n" for n in (199, 200)
    }
    good = '{"event": "alarm", "time": 1, "x": "\\": [", "y": {"x": 1}, "time ": {"time": 2}}\n'
    twice = '{"event": "alarm", "time": 1, "account": 7, "account" : 8}\n'
    inside = '{"event": "alarm", "time": 1, "x": [{"a": {"b": 1, "b": 1}}]}\n'
    wide = deep[199].replace('"x"', '"y": {"z": []}, "x"')
    book = "rulebook: r\nevents: {alarm: {signal: {}}}\nrules: {r: {on: alarm}}\n"
    assert len(lines_of(folder, good * 3 + deep[199] + wide, book)) == 5
    said = refused(folder, good + twice + good + inside + deep[200] + deep[199] + deep[200])
    assert [line.split("trace.jsonl:")[1] for line in said.splitlines()[::2]] == [
        '2:1: the line has "account" twice',
        '4:1: the line has "b" twice',
        "5:1: nested deeper than 200 levels",
        "7:1: nested deeper than 200 levels",
    ]


def test_the_year_10000_has_a_sign(folder: Path) -> None:
    book = "rulebook: r\nevents: {a: {signal: {}}}\nrules: {r: {on: 'a + [5 min]'}}\n"
    (line,) = lines_of(folder, '{"event": "a", "time": "9999-12-31T23:59:00.5Z"}\n', book)
    assert json.loads(line)["end"] == "+10000-01-01T00:04:00.500000Z"


ZONED = """
rulebook: zoned
timezone: Europe/Berlin
events: {a: {signal: {}}}
rules: {r: {on: a}, s: {on: 'a ; [3 h]'}}
scripts: {late: {text: "in time due out time seen (due(t) {!> seen(t);})*"}}
"""


@pytest.mark.parametrize(
    ("written", "utc"),
    [
        (["2026-01-01T09:00"], ["2026-01-01T08:00:00Z"]),
        (["2026-07-01T09:00:00.5"], ["2026-07-01T07:00:00.500000Z"]),
        (["2026-07-01T09:00Z"], ["2026-07-01T09:00:00Z"]),
        (["2026-10-25T02:30"], ["2026-10-25T00:30:00Z"]),  # twice: the first time
        (["2026-03-29T02:30"], ["2026-03-29T01:30:00Z"]),  # never: moved forward, 03:30
        (  # of both kinds
            ["2026-01-01T09:00", "2026-01-01T09:00:00-01:00"],
            ["2026-01-01T08:00:00Z", "2026-01-01T10:00:00Z"],
        ),
    ],
)
def test_a_time_without_offset_is_in_the_rulebook_s_zone(
    tmp_path: Path, written: list[str], utc: list[str]
) -> None:
    rulebook, trace = tmp_path / "zoned.yaml", tmp_path / "trace.jsonl"
    rulebook.write_text(ZONED)
    lines = [f'{{"event": "a", "time": "{at}"}}\n' for at in written]
    lines += [f'{{"event": "due", "time": "{at}", "value": "{at}"}}\n' for at in written]
    trace.write_text("".join(lines))
    out = io.BytesIO()
    simulate(rulebook, trace, until=written[-1], out=out)
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [each["end"] for each in found if each.get("rule") == "r"] == utc
    assert [each["value"] for each in found if "script" in each] == utc
    assert not any(each.get("rule") == "s" for each in found)  # which ends later
