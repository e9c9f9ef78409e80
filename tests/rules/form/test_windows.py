"""Windows as words of `on:` (windows 1): read, printed back, refused."""

from __future__ import annotations

import pytest
import yaml

from tidegate import rules
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.errors import InputError
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.aggregate_parser import parse_aggregates
from tidegate.rules.expressions.formatter import format_written
from tidegate.rules.model import Context, Rule

_MINUTE, _DAY = 60_000_000, 86_400_000_000
_EVENTS = """rulebook: b
events:
  req: {signal: {k: bigint, celsius: double}}
  err: {signal: {k: bigint}}
  noon: {at: "12:00"}
rules:
"""


def _rule(on: str, more: str = "") -> Rule:
    text = f"{_EVENTS}  other: {{on: req ; err within 5 s}}\n  r: {{on: {on}{more}}}\n"
    return rules.load(text, features=all_features()).rules["r"]


def _told(on: str, more: str = "") -> str:
    with pytest.raises(InputError) as caught:
        _rule(on, more)
    [problem] = caught.value.problems
    column = problem.place.column - len("  r: {on: ")
    return f"{column} {problem.place.path} | {problem.message} | {problem.hint}"


def _over_rows(text: str) -> w.Asked:
    return w.Asked(parse_aggregates(text), text)


req, err = x.Name("req"), x.Name("err")


@pytest.mark.parametrize(
    ("on", "meant"),
    [
        ("{window: 5 min, of: req}", w.Tumbling(req, x.Duration(0, 5 * _MINUTE))),
        ("{window: 1 month, of: [req]}", w.Tumbling(req, x.Duration(1, 0))),
        (
            "{window: 1 week, every: 1 day, of: [req, err]}",
            w.Sliding(x.Or((req, err)), x.Duration(0, 7 * _DAY), x.Duration(0, _DAY)),
        ),
        (
            "{session: 30 min, of: [req, err]}",
            w.Session(x.Or((req, err)), x.Duration(0, 30 * _MINUTE)),
        ),
        (
            "{over: {window: 1 min, of: [req, other], fire: avg(celsius) > 80, "
            "rearm: avg(celsius) < 70 or count(*) = 0}}",
            w.Crossing(
                x.Or((req, x.Name("other"))),
                x.Duration(0, _MINUTE),
                _over_rows("avg(celsius) > 80"),
                _over_rows("avg(celsius) < 70 or count(*) = 0"),
            ),
        ),
        (
            "{over: {window: 1 min, of: req, fire: count(*) > 2}}",
            w.Crossing(req, x.Duration(0, _MINUTE), _over_rows("count(*) > 2")),
        ),
        (
            "{holds: req, until: [err, noon], for: 10 min, keep: 5 min}",
            w.Holding(
                req,
                x.Or((err, x.Name("noon"))),
                x.Duration(0, 10 * _MINUTE),
                x.Duration(0, 5 * _MINUTE),
            ),
        ),
        (
            "{holds: req, until: err, for: 10 min}",
            w.Holding(req, err, x.Duration(0, 10 * _MINUTE), x.Duration(0, 0)),
        ),
    ],
)
def test_a_window_is_read_and_printed_back(on: str, meant: w.Window) -> None:
    read = _rule(on).pattern
    assert read.on == meant
    assert read.text == on
    assert read.context is Context.CUMULATIVE
    again = _rule(format_written(read.on)).pattern.on
    assert again == meant
    assert yaml.safe_load(format_written(read.on)).keys() == yaml.safe_load(on).keys()


def test_alternatives_are_one_list_however_they_are_written() -> None:
    either = x.Or((req, err, x.Name("noon")))
    for of in ("[req, err, noon]", "req or err or noon", "[req or err, noon]", "[req, (err|noon)]"):
        read = _rule(f"{{window: 5 min, of: {of}}}").pattern.on
        assert isinstance(read, w.Tumbling)
        assert read.part == either


def test_the_lines_of_a_block_are_one_text() -> None:
    block = "\n    on:\n      window: 5 min\n      of:\n      - req\n      - L:(noon)\n"
    rule = rules.load(f"{_EVENTS}  r:{block}", features=all_features()).rules["r"]
    assert rule.pattern.text == "{window: 5 min, of: [req, 'L:(noon)']}"


def test_a_key_is_asked_of_each_event_and_of_what_begins_it() -> None:
    assert _rule("{window: 5 min, of: [req, err]}", ", per: k").pattern.key_names == ("k",)
    said = _told("{window: 5 min, of: [req, noon]}", ", per: k")
    assert said.startswith("27 rules.r.on.of[1] | this could happen without any k")
    assert _rule("{holds: req, until: noon, for: 5 s}", ", per: k").pattern.per == {"req": ("k",)}
    assert "without any k" in _told("{holds: noon, until: req, for: 5 s}", ", per: k")


@pytest.mark.parametrize(
    ("on", "told"),
    [
        (
            "{window: 0 s, of: req}",
            "10 rules.r.on.window | the length of time must be above 0 | ",
        ),
        (
            "{window: 1 month 1 d, of: req}",
            "10 rules.r.on.window | '1 month 1 d' has months beside days | "
            "write one of them, as in 1 month",
        ),
        (
            "{session: 1 month, of: req}",
            "11 rules.r.on.session | '1 month': months and years have no fixed length here | "
            "write days",
        ),
        ("{window: 5 min}", "1 rules.r.on | a window needs the key 'of' | write of: placed"),
        (
            "{window: 5 min, off: req}",
            "17 rules.r.on.off | unknown key 'off' in a window | did you mean 'of'?",
        ),
        (
            "{tumbling: 5 min, of: req}",
            "2 rules.r.on.tumbling | unknown key 'tumbling' in a window | did you mean 'window'?",
        ),
        (
            "{window: 5 min, of: req, if: count(*) > 9}",
            "26 rules.r.on.if | unknown key 'if' in a window | it stands in the rule, beside on:",
        ),
        (
            "{over: {window: 1 min, of: req, if: count(*) > 9, fire: count(*) > 9}}",
            "33 rules.r.on.over.if | unknown key 'if' in over | did you mean 'fire'?",
        ),
        (
            "{window: 5 min, of: [req, rex]}",
            "27 rules.r.on.of[1] | unknown event 'rex' | did you mean 'req'?",
        ),
        (
            "{session: 5 s, of: [err, req ; err]}",
            "26 rules.r.on.of[1] | a window takes event types and rules, not `req ; err` | "
            "give this a rule of its own, and name that rule here",
        ),
        (
            "{window: 5 min, session: 5 min, of: req}",
            "17 rules.r.on.session | a window has only one of window, session, over, holds, "
            "not window and session | a window is one of them; another is a rule of its own",
        ),
        (
            "{window: 1 month, every: 2 h, of: req}",
            "1 rules.r.on | a window of months ends at a local midnight: "
            "every counts days or months, too | write every: 1 d, or longer",
        ),
        (
            "{over: {window: 5 min, of: req}}",
            "8 rules.r.on.over | over needs the key 'fire' | write fire: avg(celsius) > 80",
        ),
        (
            "{holds: req, until: err}",
            "1 rules.r.on | what holds needs the key 'for' | write for: 5 min",
        ),
    ],
)
def test_what_is_wrong_is_told_at_its_place(on: str, told: str) -> None:
    assert _told(on) == told


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (", context: recent", "a window takes no context"),
        (", where: req.k > 1", "a window takes no where"),
    ],
)
def test_a_window_chooses_by_itself(more: str, told: str) -> None:
    assert told in _told("{window: 5 min, of: req}", more)


@pytest.mark.parametrize(
    ("on", "where"),
    [
        ("{window: 3 business days, of: req}", "10 rules.r.on.window"),
        ("{window: 1 h, every: 3 business days, of: req}", "22 rules.r.on.every"),
        ("{session: 3 business days, of: req}", "11 rules.r.on.session"),
        (
            "{over: {window: 3 business days, of: req, fire: count(*) > 2}}",
            "17 rules.r.on.over.window",
        ),
        ("{holds: req, until: err, for: 3 business days}", "31 rules.r.on.for"),
        ("{holds: req, until: err, for: 5 s, keep: 3 business days}", "42 rules.r.on.keep"),
    ],
)
def test_no_window_counts_business_days(on: str, where: str) -> None:
    message = "'3 business days': only an event expression counts business days"
    assert _told(on) == f"{where} | {message} | write days"


@pytest.mark.parametrize(
    ("on", "refused"),
    [
        ("{window: 999 ms, of: req}", True),
        ("{window: 1 s, of: req}", False),
        ("{window: 1 month, of: req}", False),
        ("{window: 1 h, every: 1 us, of: req}", True),
        ("{window: 10 ms, every: 1 s, of: req}", False),
        ("{window: 1 month, every: 1 month, of: req}", False),
    ],
)
def test_a_window_ends_no_more_often_than_a_period_may_be(on: str, refused: bool) -> None:
    text = f"{_EVENTS}  r: {{on: {on}}}\n"
    if refused:
        with pytest.raises(InputError) as caught:
            rules.load(text)
        [problem] = caught.value.problems
        said = (problem.code, problem.message, problem.place.path)
        assert said == ("short-period", "a period below 1,000 ms is refused", "rules.r.on")
        assert "period_min_ms" in problem.hint
    else:
        rules.load(text)
    rules.load(text, features=all_features())


@pytest.mark.parametrize(
    ("length", "every", "warned"),
    [
        ("2 s", "5 s", True),
        ("5 s", "5 s", False),
        ("1 day", "25 h", True),
        ("24 h", "1 d", False),
        ("1 day", "1 month", True),
        ("31 d", "1 month", False),
        ("11 months", "1 year", True),
        ("1 year", "12 months", False),
    ],
)
def test_a_window_that_leaves_rows_out_is_warned_of(length: str, every: str, warned: bool) -> None:
    text = f"{_EVENTS}  r: {{on: {{window: {length}, every: {every}, of: req}}}}\n"
    found = [w for w in rules.load(text).warnings if w.code == "rows-in-no-window"]
    assert len(found) == warned
    if warned:
        assert f"one of {length} ends every {every}" in found[0].message
        assert f"write window: {every}" in found[0].hint


def test_only_what_holds_is_resolved() -> None:
    text = f"{_EVENTS}  hot: {{on: {{holds: req, until: err, for: 5 s}}}}\n  r: {{on: resolved %s}}"
    on = rules.load(text % "hot", features=all_features()).rules["r"].pattern.on
    assert on == x.Resolved("hot")
    assert format_written(on) == "resolved hot"
    for other in ("req", "r"):
        with pytest.raises(InputError, match="only a rule that holds is resolved"):
            rules.load(text % other, features=all_features())


def test_an_event_may_be_called_resolved() -> None:
    resolved = x.Name("resolved")
    assert rules.parse("resolved") == resolved
    assert rules.parse("req ; resolved within 5 s") == x.Within(
        x.Seq(req, resolved), x.Duration(0, 5_000_000)
    )
