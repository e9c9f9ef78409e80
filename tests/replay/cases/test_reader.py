"""What test files say, and the problems that are found in them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests.replay.cases.books import BANK, SCHEMAS, case, read, written
from tidegate.engine.replay.cases.model import Delete, Fail, Update
from tidegate.engine.replay.cases.reader import found, read_cases
from tidegate.rules.errors import InputError

AT = "at: 2026-03-02T07:00:00"
BEGIN = 1_772_431_200_000_000  # in Berlin


def refused(folder: Path, text: str, log_schema: str | None = None) -> str:
    file = written(folder, text)
    with pytest.raises(InputError) as caught:
        read_cases(file, lambda _: log_schema)
    return str(caught.value).replace(f"{folder}/", "")


def test_steps_stand_at_their_instants(tmp_path: Path) -> None:
    steps = f"[{{{AT}}}, {{after: 5 s}}, {{fail: {{rule: tell}}}}, {{until: 2026-03-02T06:01:00Z}}]"
    (one,) = read(tmp_path, case(steps)).cases
    assert [step.instant - BEGIN for step in one.steps] == [0, 5_000_000, 5_000_000, 60_000_000]
    assert one.steps[2].fail == Fail("tell", 1, one.steps[2].fail.place)  # type: ignore[union-attr]


def test_a_step_is_one_change_a_table(tmp_path: Path) -> None:
    steps = f"""
  - {AT}
    insert: {{accounts: {{account_id: 1}}, transactions: [{{amount: 1}}, {{amount: 2.5}}]}}
    update: {{accounts: {{where: account_id = 1, set: {{blocked: true}}}}}}
    delete: {{accounts: account_id = 2, log: [account_id = 3, "true"]}}
    signal: {{empty: [{{atm_id: 1}}, {{atm_id: 2}}]}}
"""
    (step,) = read(tmp_path, case(steps)).cases[0].steps
    assert list(step.tables) == ["accounts", "transactions", "log"]
    accounts = step.tables["accounts"]
    assert [{n: w.value for n, w in row.items()} for row in accounts.inserts] == [{"account_id": 1}]
    assert [type(each) for each in (*accounts.updates, *accounts.deletes)] == [Update, Delete]
    assert accounts.place.line == 10
    assert [one.where for one in step.tables["log"].deletes] == ["account_id = 3", "true"]
    assert [one.fields["atm_id"].value for one in step.signals] == [1, 2]


def test_expectations_are_read(tmp_path: Path) -> None:
    expect = """
    firings: {four: [{key: {account_id: 7}, constituents: 4}], seen: ?, tell: []}
    tables: {accounts: [{account_id: 7}], log: {exact: true, rows: []}}
    signals: ?
    only: true
    rejected: 0
    dead: ?
"""
    one = read(tmp_path, case(f"[{{{AT}}}]", expect)).cases[0].expect
    assert one is not None
    assert one.only
    assert one.firings["seen"].asked
    assert [one.firings["tell"].rows, one.firings["tell"].asked] == [(), False]
    assert [each.exact for each in (*one.tables.values(), *one.firings.values())] == [
        *(False, True),
        *(True, True, True),
    ]
    assert list(one.asked) == ["signals"]
    assert [each.count for each in (one.rejected, one.dead) if each] == [0, None]


@pytest.mark.parametrize("text", ["?", "'?'", '"?"', "? # later"])
def test_a_question_mark_asks(tmp_path: Path, text: str) -> None:
    (one,) = read(tmp_path, case(f"[{{{AT}}}]", text)).cases
    assert one.expect is not None
    assert list(one.expect.asked) == [""]


def test_a_question_mark_in_a_text_stays(tmp_path: Path) -> None:
    text = case(f"[{{{AT}, insert: {{transactions: {{kind: 'is it: ?'}}}}}}]").replace(
        "name: a", "name: |\n    what: ?\n    who"
    )
    (one,) = read(tmp_path, text).cases
    assert one.name == "what: ?\nwho\n"
    assert one.steps[0].tables["transactions"].inserts[0]["kind"].value == "is it: ?"


def test_types_are_declared_logged_or_inferred(tmp_path: Path) -> None:
    text = f"""\
rulebook: bank.yaml
schemas: {{accounts: {{account_id: int, blocked: boolean}}}}
tests:
- name: a
  tables: {{transactions: [{{transaction_id: 1, amount: 1, kind: x, ok: true}}]}}
  steps: [{{{AT}, insert: {{transactions: {{amount: 0.5, day: 2026-03-02}}}}}}]
"""
    schema = '{"fields": [{"name": "account_id", "type": "short"}]}'
    file = written(tmp_path, text)
    seen: list[str] = []

    def logged(path: str) -> str | None:
        seen.append(path)
        return schema if path.endswith("log") else None

    found = read_cases(file, logged).schemas
    assert found["accounts"] == pa.schema([("account_id", pa.int32()), ("blocked", pa.bool_())])
    assert found["log"] == pa.schema([("account_id", pa.int16())])
    kinds = {"transaction_id": pa.int64(), "amount": pa.float64(), "kind": pa.string()}
    kinds |= {"ok": pa.bool_(), "day": pa.string()}
    assert found["transactions"] == pa.schema(list(kinds.items()))
    assert seen == [str(tmp_path / "lake" / name) for name in ("transactions", "log")]


@pytest.mark.parametrize(
    ("ddl", "odd"),
    [
        ("account_id CHAR(3)", "CHAR(3)"),
        ("{account_id: varchar ( 8 )}", "varchar ( 8 )"),
        ('"a STRUCT<b: character(2)>"', "character(2)"),
        ("account_id STRING COLLATE UTF8_LCASE", "STRING COLLATE UTF8_LCASE"),
    ],
)
def test_texts_that_are_padded_or_collated_are_refused(tmp_path: Path, ddl: str, odd: str) -> None:
    text = case(f"[{{{AT}}}]").replace("  log: account_id BIGINT", f"  log: {ddl}")
    said = refused(tmp_path, text)
    assert f"texts of a test are plain ones, and not '{odd}' (schemas.log" in said
    assert "    write STRING" in said


def test_texts_that_the_real_table_pads_or_collates_are_told_of(tmp_path: Path) -> None:
    text = case(f"[{{{AT}}}]").replace("  log: account_id BIGINT\n", "")
    fields = [
        {"name": "a", "type": "string", "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}},
        {"name": "b", "type": "string", "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}},
        {"name": "c", "type": "string", "metadata": {"__COLLATIONS": {"c": "icu.UNICODE"}}},
    ]
    found = read_cases(written(tmp_path, text), lambda _: json.dumps({"fields": fields}))
    (warning,) = found.warnings
    assert (warning.code, warning.place.line) == ("plain-text", 1)
    assert warning.message == "log has char(n) columns, or a collation: a, c"


def test_a_table_that_only_actions_write_needs_no_columns(tmp_path: Path) -> None:
    text = case(f"[{{{AT}}}]").replace("  log: account_id BIGINT\n", "")
    assert read(tmp_path, text).schemas["log"] == pa.schema([])


def test_what_a_row_has_wrong(tmp_path: Path) -> None:
    rows = "{transaction_id: x, acount_id: 7, amount: 400.123, kind: 7}"
    said = refused(tmp_path, case(f"[{{{AT}, insert: {{transactions: [{rows}]}}}}]"))
    at = "(tests[0].steps[0].insert.transactions[0]."
    assert said == (
        f"bank.test.yaml:8:78: column `transaction_id` is to be bigint, but is 'x' {at}"
        "transaction_id)\n    write a value of the type bigint\n"
        f"bank.test.yaml:8:92: there is no column `acount_id` {at}acount_id)\n"
        "    did you mean 'account_id'?\n"
        f"bank.test.yaml:8:103: column `amount` is to be decimal(12,2), but is 400.123 {at}amount)"
        "\n    write a value of the type decimal(12,2)\n"
        f"bank.test.yaml:8:118: column `kind` is to be string, but is 7 {at}kind)\n"
        '    quote it: "7"'
    )


@pytest.mark.parametrize(
    ("steps", "expect", "said"),
    [
        ("[{}]", "{}", "8:11: the first step says when it is"),
        ("[{after: 1 s}]", "{}", "8:19: the first step says when it is"),
        (f"[{{{AT}}}, {{at: 2026-03-02T06:00:00}}]", "{}", "time goes back"),
        (f"[{{{AT}.000500}}]", "{}", "this is no whole millisecond"),
        (f"[{{{AT}}}, {{after: 5 us}}]", "{}", "this is no whole millisecond"),
        (f"[{{{AT}, until: 2026-03-03}}]", "{}", "only one of at, after, until, not at and until"),
        ("[{at: soon}]", "{}", "'soon' is not an instant"),
        (f"[{{{AT}}}, {{after: 1 month}}]", "{}", "months and years have no fixed length here"),
        (
            f"[{{{AT}, delete: {{log: 'true'}}}}, {{insert: {{log: {{account_id: 1}}}}}}]",
            "{}",
            "happens at this instant, and has been taken already (tests[0].steps[1].insert.log)\n"
            "    one step has all of an instant: join them, or write after: 1 ms",
        ),
        (
            f"[{{{AT}, delete: {{log: 'true'}}}}, {{signal: {{empty: {{atm_id: 4}}}}}}]",
            "{}",
            "has been taken already (tests[0].steps[1].signal.empty)",
        ),
        (f"[{{{AT}, insert: {{acounts: []}}}}]", "{}", "no table 'acounts'"),
        (f"[{{{AT}, signal: {{emty: {{}}}}}}]", "{}", "no signal 'emty'"),
        (f"[{{{AT}, signal: {{empty: {{atm: 1}}}}}}]", "{}", "no column `atm`"),
        (f"[{{{AT}, signal: {{empty: {{at: x}}}}}}]", "{}", "is to be timestamp, but is 'x'"),
        (f"[{{{AT}, fail: {{rule: tel}}}}]", "{}", "no rule 'tel'"),
        (f"[{{{AT}, fail: {{rule: seen}}}}]", "{}", "has no actions that could fail"),
        (f"[{{{AT}, insert: {{log: [{{account_id: 1.{'1' * 30}}}]}}}}]", "{}", "more digits than"),
        (f"[{{{AT}}}]", "{firings: {fuor: []}}", "no rule 'fuor' (tests[0].expect.firings.fuor)\n"),
        (f"[{{{AT}}}]", "{firings: {four: [{key: {account: 7}}]}}", "has no column 'account'"),
        (f"[{{{AT}}}]", "{firings: {seen: [{key: {a: 7}}]}}", "'seen' has no key"),
        (f"[{{{AT}}}]", "{firings: {seen: [{end: 7}]}}", "did you mean 'at'?"),
        (f"[{{{AT}}}]", "{firings: {seen: [{condition: hold}]}}", "did you mean 'held'?"),
        (f"[{{{AT}}}]", "{tables: {log: [{accountid: 1}]}}", "did you mean 'account_id'?"),
        (f"[{{{AT}}}]", "{tables: {accounts: [{blocked: 1}]}}", "is to be boolean, but is 1"),
        (f"[{{{AT}}}]", "{signals: {told: [{account_id: x}]}}", "is to be bigint, but is 'x'"),
        (f"[{{{AT}}}]", "{signals: {withdrawal: []}}", "no signal 'withdrawal'"),
        (f"[{{{AT}}}]", "{webhooks: {four: []}}", "the rule 'four' sends no webhook"),
        (f"[{{{AT}}}]", "{webhooks: {tell: [{atn: 1}]}}", "no field 'atn'"),
        (f"[{{{AT}}}]", "{emissions: {told: []}}", "no event of a script 'told'"),
        (
            f"[{{{AT}}}]",
            "{emissions: {told: []}}",
            "none in this rulebook: leave this out",
        ),
        (
            f"[{{{AT}, fail: {{rule: seen}}}}]",
            "{}",
            "fail (tests[0].steps[0].fail.rule)\n    ",
        ),
        (f"[{{{AT}, update: {{log: {{where: x = 1, set: {{id: 1}}}}}}}}]", "{}", "no column `id`"),
        (f"[{{{AT}, delete: {{log: acount_id = 1}}}}]", "{}", "did you mean 'account_id'?"),
        (
            f"[{{{AT}, update: {{log: {{where: abs(amout) > 1, set: {{account_id: 1}}}}}}}}]",
            "{}",
            "no column `amout` in log (tests[0].steps[0].update.log.where)",
        ),
        (f"[{{{AT}}}]", "{rejected: none}", "expected a whole number"),
        (f"[{{{AT}, alter: {{logs: {{add: 'n INT'}}}}}}]", "{}", "no table 'logs'"),
        (f"[{{{AT}, alter: {{log: {{add: 'n IN'}}}}}}]", "{}", "tests[0].steps[0].alter.log.add"),
        (f"[{{{AT}, alter: {{log: {{add: {{}}}}}}}}]", "{}", "no column"),
        (f"[{{{AT}, alter: {{log: {{drop: n}}}}}}]", "{}", "needs the key 'add'"),
        (
            f"[{{{AT}, alter: {{log: {{add: Account_Id INT}}}}}}]",
            "{}",
            "`Account_Id` is a column of log already (tests[0].steps[0].alter.log)\n"
            "    a step adds new columns only",
        ),
        (f"[{{{AT}, alter: {{log: {{add: 'n INT, N INT'}}}}}}]", "{}", "of log already"),
        (
            f"[{{{AT}, insert: {{log: []}}, alter: {{log: {{add: n INT}}}}}}]",
            "{}",
            "this step adds columns to log, and changes its rows (tests[0].steps[0].insert.log)\n"
            "    a step is one commit for each table: make it two, with after: 1 ms",
        ),
        (
            f"[{{{AT}, insert: {{log: {{n: 1}}}}}},"
            " {after: 1 s, alter: {log: {add: n INT}}}]",
            "{}",
            "there is no column `n` (tests[0].steps[0].insert.log.n)",
        ),
        (
            f"[{{{AT}, alter: {{log: {{add: n INT}}}}}},"
            " {after: 1 s, insert: {log: {n: x}}}]",
            "{}",
            "column `n` is to be int, but is 'x'",
        ),
    ],
)
def test_refusals(tmp_path: Path, steps: str, expect: str, said: str) -> None:
    assert said in refused(tmp_path, case(steps, expect))


def test_a_table_has_the_columns_that_a_step_adds_from_then_on_and_in_that_case_only(
    tmp_path: Path,
) -> None:
    steps = f"""
  - {{{AT}, insert: {{log: {{account_id: 1}}}}}}
  - {{after: 1 s, alter: {{log: {{add: "n INT, at TIMESTAMP"}}, accounts: {{add: {{m: string}}}}}}}}
  - {{after: 1 s, update: {{log: {{where: n is null, set: {{n: 2}}}}}}}}
  - after: 1 s
    insert: {{log: {{n: 1, at: 2026-03-02T07:00:00}}}}
    expect: {{tables: {{log: [{{n: 1}}]}}}}
"""
    text = case(steps, "{tables: {log: [{n: 2}], accounts: []}}")
    found = read(tmp_path, text)
    added = found.cases[0].steps[1].tables
    assert added["log"].added == pa.schema({"n": pa.int32(), "at": pa.timestamp("us", "UTC")})
    assert added["accounts"].added == pa.schema({"m": pa.string()})
    assert found.schemas["log"].names == ["account_id"]
    other = f"- name: b\n  steps: [{{{AT}, insert: {{log: {{n: 1}}}}}}]\n"
    assert "no column `n` (tests[1].steps[0].insert.log.n)" in refused(tmp_path, text + other)
    inferred = text.replace("  log: account_id BIGINT\n", "")
    assert read(tmp_path, inferred).schemas["log"].names == ["account_id"]


def test_an_instant_between_milliseconds_is_told_once(tmp_path: Path) -> None:
    said = refused(tmp_path, case(f"[{{{AT}.000500}}, {{after: 1 s}}, {{after: 1 s}}]"))
    assert said.count("this is no whole millisecond") == 1


def test_rows_that_are_there_before_have_the_table_s_columns(tmp_path: Path) -> None:
    text = case(f"[{{{AT}}}]").replace("  steps:", "  tables: {log: [{id: 1}]}\n  steps:")
    assert "there is no column `id` (tests[0].tables.log[0].id)" in refused(tmp_path, text)


SENDING = """\
scripts:
  counting:
    text: |
      in {long account_id;} told out {long n;} counted
      (told(x) { !> counted({n: x.account_id}); })*
rules:
  bare: {on: counted, do: [{webhook: {url: "https://ops.example.org/a"}}]}
"""


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ("{emissions: {counted: [{n: 1, time: 2026-03-02T07:00:00}]}}", ""),
        ("{emissions: {counted: [{n: x}]}}", "column `n` is to be bigint, but is 'x'"),
        ("{emissions: {counted: [{m: 1}]}}", "there is no column `m`"),
        ("{webhooks: {bare: [{}]}}", ""),
        ("{webhooks: {bare: [{n: 1}]}}", "the webhook of 'bare' has no field 'n'"),
    ],
)
def test_what_scripts_and_webhooks_without_a_body_have(
    tmp_path: Path, expect: str, said: str
) -> None:
    file = written(tmp_path, case(f"[{{{AT}}}]", expect))
    (tmp_path / "bank.yaml").write_text(BANK.replace("rules:\n", SENDING))
    if not said:
        assert read_cases(file).cases
        return
    with pytest.raises(InputError) as caught:
        read_cases(file)
    assert said in str(caught.value)


def test_all_problems_of_a_file_are_found_at_once(tmp_path: Path) -> None:
    text = f"""\
rulebook: bank.yaml
schema: {{}}
defaults: {{transactions: {{amount: many}}}}
tests:
- steps: []
- name: a
  steps: [{{{AT}, insert: {{transactions: [{{amount: 1}}]}}}}]
- name: a
  steps: [{{{AT}, insert: {{transactions: [{{amount: x}}]}}}}]
"""
    said = refused(tmp_path, text)
    for one in (
        "2:1: unknown key 'schema' in a test file (schema)\n    did you mean 'schemas'?",
        "5:3: a test needs the key 'name'",
        "5:10: the list is empty",
        "7:70: column `amount` has values of several types, the other at line 3",
        "8:9: two tests are named 'a'",
        "1:1: the columns of the table 'accounts' are not known; 'blocked' reads them",
        'schemas: {accounts: "id BIGINT, ..."}',
    ):
        assert one in said


def test_types_that_cannot_be_inferred(tmp_path: Path) -> None:
    rows = "{a: null, b: [1], c: 99999999999999999999}"
    text = case(f"[{{{AT}, insert: {{log: {rows}}}}}]").replace("  log: account_id BIGINT\n", "")
    said = refused(tmp_path, text)
    assert "column `a` cannot be inferred: it is null everywhere" in said
    for name in "bc":
        assert f"the type of column `{name}` cannot be inferred from this value" in said
        assert f'schemas: {{log: "{name} STRING, ..."}}' in said


def test_the_rulebook_is_looked_for_beside_the_file(tmp_path: Path) -> None:
    said = refused(tmp_path, SCHEMAS.replace("bank.yaml", "shop.yaml") + "tests: []\n")
    assert said.startswith("bank.test.yaml:1:11: there is no rulebook 'shop.yaml' (rulebook)")
    file = written(tmp_path, f"{SCHEMAS}tests: [x]\n")
    (tmp_path / "bank.yaml").write_text("rulebook: b\nrules: {r: {on: nothing}}\n")
    with pytest.raises(InputError, match=r"expected a test(.|\n)*nothing"):
        read_cases(file)


def test_a_rulebook_is_no_test_file(tmp_path: Path) -> None:
    written(tmp_path, SCHEMAS)
    with pytest.raises(InputError) as refusal:
        read_cases(tmp_path / "bank.yaml")
    (problem,) = refusal.value.problems
    assert problem.message == "this is a rulebook, and not a file of tests"
    assert problem.hint == f"name its tests: tidegate test {tmp_path}/bank.test.yaml"


def test_without_tests_no_columns_are_asked_for(tmp_path: Path) -> None:
    assert not read(tmp_path, "rulebook: bank.yaml\ntests: []\n").cases
    said = refused(tmp_path, "rulebook: bank.yaml\ntests: {name: a}\n")
    assert "expected a list" in said
    assert "columns" not in said


def test_files_are_found_in_folders(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("b/two.test.yaml", "b/two.yaml", "one.test.yaml"):
        (tmp_path / name).touch()
    files = [tmp_path / "b" / "two.test.yaml", tmp_path / "one.test.yaml"]
    assert found([tmp_path]) == files
    assert found([files[1], tmp_path]) == files[::-1]
    (tmp_path / "c").mkdir()
    with pytest.raises(InputError, match=r"there is no file \*\.test\.yaml in this folder"):
        found([tmp_path / "c"])


def test_a_duration_without_a_unit_is_warned_of(tmp_path: Path) -> None:
    (warning,) = read(tmp_path, case(f"[{{{AT}}}, {{after: 5}}]")).warnings
    assert warning.message == "5 without a unit is seconds"
