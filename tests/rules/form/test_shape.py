"""What a readable rulebook becomes: the complete example, defaults, paths, instants, keys."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from tidegate import parse, rules
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.errors import InputError
from tidegate.rules.model import (
    Context,
    Coupling,
    Dedupe,
    Retry,
    Rule,
    Rulebook,
    Selection,
    Settings,
    SignalAction,
    SignalEvent,
    Sql,
    Start,
    TableEvent,
    Throttle,
    Webhook,
)

BANK = Path(__file__).parents[1] / "bank.yaml"


def load(text: str, **options: Any) -> Rulebook:
    return rules.load(text, features=all_features(), **options)


@pytest.fixture(scope="module")
def bank() -> Rulebook:
    return rules.load(BANK, features=all_features())


def test_example_may_run() -> None:
    assert rules.load(BANK).name == "bank"


def test_example_tables_and_events(bank: Rulebook) -> None:
    assert (bank.name, bank.timezone, bank.file) == ("bank", "Europe/Berlin", str(BANK))
    assert bank.tables["transactions"].path == str(BANK.parent / "lake" / "transactions")
    assert bank.tables["accounts"].catalog == "bank.accounts"
    withdrawal = bank.events["withdrawal"]
    assert isinstance(withdrawal, TableEvent)
    assert (withdrawal.change, withdrawal.where) == ("insert", "kind = 'withdraw'")
    transfer = bank.events["transfer"]
    assert isinstance(transfer, TableEvent)
    assert (transfer.time, transfer.lateness_micros) == ("booked_at", 600_000_000)
    assert transfer.ahead_micros == 3_600_000_000
    atm_empty = bank.events["atm_empty"]
    assert isinstance(atm_empty, SignalEvent)
    assert atm_empty.fields == {"atm_id": "bigint", "amount": "decimal(12,2)"}


def test_example_rule(bank: Rulebook) -> None:
    rule = bank.rules["four_withdrawals"]
    assert rule.pattern.on == parse("A(opening, any(4, withdrawal*), closing)")
    assert rule.pattern.context is Context.CHRONICLE
    assert (rule.pattern.key_names, rule.pattern.per) == (
        ("account_id",),
        {"withdrawal": ("account_id",)},
    )
    sql, signal = rule.reaction.actions
    assert isinstance(sql, Sql)
    assert sql.text.startswith("MERGE INTO accounts a USING")
    # The SQL's own first line, not the line of its block header.
    lines = BANK.read_text().splitlines()
    assert lines[sql.place.line - 1][sql.place.column - 1 :].startswith("MERGE INTO")
    assert isinstance(signal, SignalAction)
    assert signal.fields == {"account_id": "account_id", "total": "sum(amount)"}
    bare, webhook = rule.reaction.otherwise
    assert isinstance(bare, SignalAction)
    assert bare.fields == {"account_id": "account_id"}
    assert isinstance(webhook, Webhook)
    assert webhook.fields == {"account": "account_id"}
    assert rule.reaction.retry == Retry(5, 1_000_000, 60_000_000)
    assert rule.reaction.within_micros == 300_000_000
    assert rule.condition is not None
    assert not rule.condition.query


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ("a", "unrestricted"),
        ("L:((a))", "unrestricted"),
        ("a or b", "unrestricted"),
        ("a or (L:(b) or at(08:00))", "unrestricted"),
        ("cron('0 * * * *')", "unrestricted"),
        ("end_of acting or failed acting", "unrestricted"),
        ("other", "unrestricted"),
        ("a ; b", "restricted"),
        ("a within 5", "restricted"),
        ("a or a[2]", "restricted"),
        ("any(1, a, b)", "restricted"),
        ("every(1, a)", "restricted"),
    ],
)
def test_s09_default_context(on: str, expected: str) -> None:
    text = "rulebook: b\nevents: {a: {signal: {}}, b: {signal: {}}}\nrules:\n  other: {on: a}\n"
    text += "  acting: {on: a, do: {signal: a}}\n"
    assert load(f'{text}  r: {{on: "{on}"}}\n').rules["r"].pattern.context == expected


def test_context_as_a_selection() -> None:
    given = "{select: {first: last, then: first}, pairs: all, repeat: true}"
    rule = one_rule(f"on: a ; a, context: {given}")
    assert rule.pattern.selection == Selection("last", "first", "all", True, "early")


def one_rule(keys: str, fields: str = "") -> Rule:
    text = f"rulebook: b\nevents: {{a: {{signal: {{{fields}}}}}}}\nrules:\n  r: {{{keys}}}\n"
    return load(text).rules["r"]


def test_defaults_of_a_rule() -> None:
    rule = one_rule("on: a")
    assert rule.reaction.actions == ()
    assert rule.condition is None
    assert rule.reaction.retry == Retry(3, 1_000_000, 60_000_000)
    assert (rule.condition_coupling, rule.reaction.coupling) == (Coupling.DEFERRED,) * 2
    assert (
        rule.precedence.priority,
        rule.enabled,
        rule.reaction.on_dead,
        rule.reaction.for_each,
    ) == (0, True, "continue", None)


@pytest.mark.parametrize(
    ("given", "modes"),
    [
        ("immediate", ("immediate", "immediate")),
        ("{condition: immediate}", ("immediate", "immediate")),
        ("{action: detached}", ("detached", "detached")),
        ("{condition: immediate, action: detached}", ("immediate", "detached")),
    ],
)
def test_coupling_defaults_to_the_same_mode(given: str, modes: tuple[str, str]) -> None:
    rule = one_rule(f"on: a, coupling: {given}")
    assert (rule.condition_coupling, rule.reaction.coupling) == modes


def test_condition_as_a_query() -> None:
    condition = one_rule("on: a, if: {sql: SELECT firing_id FROM event}").condition
    assert condition is not None
    assert condition.query


def test_bare_signal_hands_on_the_key_or_nothing() -> None:
    text = "rulebook: b\nevents: {a: {signal: {k: int}}, n: {signal: {}}}\nrules:\n"
    rule = load(f"{text}  r: {{on: a, per: k, do: [signal: a, signal: n]}}\n").rules["r"]
    fields = [action.fields for action in rule.reaction.actions if isinstance(action, SignalAction)]
    assert fields == [{"k": "k"}, {}]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("now", Start("now")),
        ("snapshot", Start("snapshot")),
        ("{version: 7}", Start("version", 7)),
        ("{time: 1970-01-01T00:00:01Z}", Start("time", 1_000_000)),
        ("{time: 1970-01-01T01:00:00.5+01:00}", Start("time", 500_000)),
        # Without an offset: in the rulebook's zone, here one hour ahead of UTC.
        ("{time: 1970-01-01T01:00:01}", Start("time", 1_000_000)),
        ("{time: 2026-01-02}", None),
    ],
)
def test_start_of_a_table(given: str, expected: Start | None) -> None:
    text = f"rulebook: b\ntimezone: Europe/Berlin\ntables:\n  t: {{path: /t, start: {given}}}\n"
    if expected is None:
        instant = datetime.datetime(2026, 1, 1, 23, tzinfo=datetime.UTC)
        expected = Start("time", int(instant.timestamp()) * 1_000_000)
    assert load(text).tables["t"].start == expected


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        ("./lake/t", "/books/lake/t"),
        ("../lake/t", "/lake/t"),
        ("t", "/books/t"),
        ("/data/t", "/data/t"),
        ("s3://bucket/t", "s3://bucket/t"),
        ("file:/data/t", "file:/data/t"),
        ("abfss://c@a.example.org/t", "abfss://c@a.example.org/t"),
    ],
)
def test_paths_are_stored_absolute(path: str, stored: str) -> None:
    text = f'rulebook: b\ntables:\n  t: {{path: "{path}"}}\n'
    assert load(text, file="/books/bank.yaml").tables["t"].path == stored


def test_a_relative_path_needs_a_file() -> None:
    with pytest.raises(InputError) as caught:
        load("rulebook: b\ntables:\n  t: {path: lake/t}\n  u: {path: s3://b/u}\n")
    (problem,) = caught.value.problems
    assert (problem.place.line, problem.place.column) == (3, 13)
    assert problem.message == "the relative path 'lake/t' in a text without a file"


def test_relative_to_the_file_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("\ufeffrulebook: b\ntables: {t: {path: lake}}\n", "utf-8")
    assert load(str(tmp_path / "b.yaml")).tables["t"].path == str(tmp_path / "lake")


@pytest.mark.parametrize(
    ("per", "names", "keyed"),
    [
        ("k", ("k",), {"w": ("k",), "s": ("k",)}),
        ("[k, l]", ("k", "l"), {"w": ("k", "l"), "s": ("k", "l")}),
        ("{w: x}", ("x",), {"w": ("x",)}),
        ("{w: x, s: k}", ("x",), {"w": ("x",), "s": ("k",)}),
        ("{w: [x, y], s: [k, l]}", ("x", "y"), {"w": ("x", "y"), "s": ("k", "l")}),
    ],
)
def test_s07_keys(per: str, names: tuple[str, ...], keyed: dict[str, tuple[str, ...]]) -> None:
    text = (
        "rulebook: b\ntables: {t: {path: /t}}\nevents:\n  w: {on: insert, table: t}\n"
        "  s: {signal: {k: int, l: int}}\n  none: {signal: {}}\n"
        f"rules:\n  r: {{on: w ; s ; none, per: {per}}}\n"
    )
    rule = load(text).rules["r"]
    assert (rule.pattern.key_names, rule.pattern.per) == (names, keyed)


@pytest.mark.parametrize(
    "on",
    [
        "w + [5 min]",
        "not(b)[w, b]",
        "not(b)[b, w]",
        "A*(w, b, b)",
        "A(b, w, b)",
        "w or v",
        "b and w",
        "any(2, w, v, b)",
        "any(9, w, b)",
        "P(w, [5], b)",
        "w - b",
        "L:(w ; [5])",
        "any(2, w*)",
        "w[2] or every(3, v)",
        "r0 ; b",
    ],
)
def test_s07_every_instance_has_a_key(on: str) -> None:
    text = (
        "rulebook: b\nevents:\n  w: {signal: {k: int}}\n  v: {signal: {k: int}}\n"
        f'  b: {{signal: {{}}}}\nrules:\n  r0: {{on: w, per: k}}\n  r: {{on: "{on}", per: k}}\n'
    )
    assert load(text).rules["r"].pattern.key_names == ("k",)


def test_settings_and_their_overrides() -> None:
    text = "rulebook: b\nsettings: {lease_seconds: 5, commit_slack_ms: 0}\n"
    assert load(text).settings == Settings(lease_seconds=5, commit_slack_ms=0)
    overrides = {"lease_seconds": "7", "bucket_rows_max": "10"}
    settings = load(text, settings=overrides).settings
    assert (settings.lease_seconds, settings.bucket_rows_max) == (7, 10)
    assert settings.commit_slack_ms == 0


def test_overrides_are_numbers_as_well_as_texts() -> None:
    assert load("rulebook: b\n", settings={"bucket_rows_max": 10}).settings.bucket_rows_max == 10


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("lease_secs", "7", "unknown setting lease_secs"),
        ("lease_seconds", "soon", "expected a whole number, found 'soon'"),
        ("lease_seconds", "0", "0 must be at least 1"),
    ],
)
def test_wrong_overrides(name: str, value: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load("rulebook: b\n", settings={name: value})
    (problem,) = caught.value.problems
    assert (problem.message, problem.place.path) == (message, f"settings.{name}")
    assert problem.place.file == f"--set {name}"  # not the rulebook, which is right


def test_yaml_is_the_core_schema_of_1_2() -> None:
    text = "rulebook: no\nevents: {yes: {signal: {on: int}}}\nrules: {off: {on: yes}}\n"
    book = load(text)
    assert (book.name, list(book.events), list(book.rules)) == ("no", ["yes"], ["off"])


def test_keys_of_what_is_not_built_yet_are_read() -> None:
    assert one_rule("on: a, granularity: {firings: 3, per: [x, 1]}, expire_key_after: 5 s")
    with pytest.raises(InputError, match="unknown unit 'x'"):
        one_rule("on: a, expire_key_after: 5 x")


def test_what_damps_a_rule() -> None:
    keys = "throttle: 3 per 90 min, cooldown: 5 s, dedupe: {by: x, within: PT1M}"
    keys += ", hysteresis: {fire: x > 1, rearm: x < 1}"
    text = f"rulebook: b\nevents: {{a: {{signal: {{x: int}}}}}}\nrules: {{r: {{on: a, {keys}}}}}\n"
    rule = load(text).rules["r"]
    assert rule.damping is not None
    assert rule.damping.throttle == Throttle(3, 5_400_000_000)
    assert rule.damping.cooldown_micros == 5_000_000
    assert rule.damping.dedupe == Dedupe(("x",), 60_000_000)
    assert rule.damping.hysteresis is not None
    levels = (rule.damping.hysteresis.fire, rule.damping.hysteresis.rearm)
    assert [(level.text, level.query) for level in levels] == [("x > 1", False), ("x < 1", False)]
    assert rule.asks
    assert not one_rule("on: a, cooldown: 5 s").asks
    assert one_rule("on: a").damping is None


def test_g22_a_rule_may_ignore_its_own_writes() -> None:
    assert one_rule("on: a, ignore_own: true").pattern.ignore_own
    assert not one_rule("on: a").pattern.ignore_own


def test_an_action_may_stand_without_its_list_and_its_key() -> None:
    text = "INSERT INTO t (x) SELECT x FROM event"
    forms = [
        f"do: [{{sql: '{text}'}}]",
        f"do: {{sql: '{text}'}}",
        f"do: '{text}'",
        f"do: ['{text}']",
        f"do:\n      {text}",
        f"do:\n      - >-\n        {text}",
        f"do:\n      sql: {text}",
    ]
    for form in forms:
        book = load(
            "rulebook: b\ntables: {t: {path: /t}}\nevents: {a: {signal: {x: int}}}\n"
            f"rules:\n  r:\n    on: a\n    {form}\n"
        )
        (action,) = book.rules["r"].reaction.actions
        assert isinstance(action, Sql)
        assert action.text == text
    raised = load("rulebook: b\nevents: {a: {signal: {}}}\nrules: {r: {on: a, do: {signal: a}}}\n")
    assert [type(action) for action in raised.rules["r"].reaction.actions] == [SignalAction]


@pytest.mark.parametrize("text", ["1 hour", "60 minutes", "1h", "0.5h30min", "PT1H", "PT30M1800S"])
def test_lengths_of_time_of_keys_are_those_of_expressions(text: str) -> None:
    book = load(
        "rulebook: b\ntables: {t: {path: /t}}\n"
        f"events: {{a: {{on: insert, table: t, time: at, lateness: {text}}}}}\n"
        f"rules: {{r: {{on: a ; a within {text}, cooldown: {text}}}}}\n"
    )
    event, node = book.events["a"], book.rules["r"].pattern.on
    assert isinstance(event, TableEvent)
    assert event.lateness_micros == 3_600_000_000
    assert node == parse("a ; a within 1 h")
    assert "no-unit" not in {warning.code for warning in book.warnings}
