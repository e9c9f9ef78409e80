"""What a world in memory shows of rulebooks' lives."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.replay.memory.told import HEAD, PLACE, Told, row, worlds
from tests.support.make import BEGIN, SECOND
from tidegate.engine.replay.cases.model import TableChange, Update
from tidegate.rules.errors import EngineError, InputError

SQL = "{sql: INSERT INTO out SELECT id FROM event}"
SCRIPT = """\
scripts:
  counting:
    text: |
      in {long id;} new out {long id; long n;} counted
      (new(x) {n = n + 1; !> counted({id: x.id, n: n});})*
"""
SCRIPTED = HEAD.replace("rules:\n", f"{SCRIPT}rules:\n")


def test_an_insert_is_detected() -> None:
    told = Told(HEAD + "  a: {on: new, per: id}")
    told.insert(1, {"id": 7, "amount": 2.5})
    [firing] = told.seen.firings["a"]
    assert firing["key"] == {"id": 7}
    assert firing["at"].timestamp() == firing["start"].timestamp() == BEGIN / SECOND + 1
    assert (firing["condition"], firing["damped"], firing["depth"]) == ("none", None, 1)
    [constituent] = firing["constituents"]
    assert constituent == {"event": "new", "time": firing["at"], "id": 7}


def test_what_a_rule_reads_shows_with_the_type_of_the_table() -> None:
    told = Told(HEAD + "  a: {on: new, if: sum(amount) > 2}")
    told.insert(1, {"id": 7, "amount": 2.5}).insert(2, {"id": 8, "amount": 1})
    assert told.outcomes("a") == [("held", None), ("failed", None)]
    assert told.seen.firings["a"][0]["constituents"][0]["amount"] == Decimal("2.50")


def test_rows_that_are_there_before_are_no_events_and_can_be_updated_and_deleted() -> None:
    rules = "  a: {on: new}\n  b: {on: changed, if: max(old.amount) < max(amount)}\n  c: {on: gone}"
    told = Told(HEAD + rules, items=[{"id": 1, "amount": 1}, {"id": 2, "amount": 5}])
    told.change(1, updates=[("id = 1", {"amount": 3})], deletes=["amount > 4"])
    assert told.fired("a") == []
    assert told.outcomes("b") == [("held", None)]
    assert told.fired("c") == [1]
    assert told.seen.tables["items"] == [{"id": 1, "amount": Decimal("3.00"), "note": None}]


def test_an_update_that_changes_nothing_is_no_event_and_of_names_columns() -> None:
    text = HEAD.replace("changed: {on: update", "changed: {on: update, of: [note]")
    told = Told(text + "  a: {on: changed}", items=[{"id": 1, "note": "x"}])
    told.change(1, updates=[("true", {"note": "x"})])
    told.change(2, updates=[("id = 1", {"amount": 9})])
    told.change(3, updates=[("note IS NOT NULL", {"note": "y"})])
    assert told.fired("a") == [3]


def test_inserted_rows_are_neither_updated_nor_deleted_and_what_is_updated_stays() -> None:
    told = Told(HEAD + "  a: {on: new}", items=[{"id": 1}, {"id": 2}])
    told.change(
        1,
        inserts=[{"id": 3}],
        updates=[("id = 1", {"note": "b"}), ("id < 2", {"amount": 4})],
        deletes=["true"],
    )
    assert told.seen.tables["items"] == [
        {"id": 1, "amount": Decimal("4.00"), "note": "b"},
        {"id": 3, "amount": None, "note": None},
    ]


def test_commits_are_events_with_their_operations_and_metrics() -> None:
    text = HEAD.replace("rules:", "  commit: {on: commit, table: items}\nrules:")
    told = Told(text + "  a: {on: commit, if: max(operation) <> 'X'}", items=[{"id": 1}])
    told.insert(1, {"id": 2}, {"id": 3})
    told.change(2, updates=[("id = 2", {"amount": 1})])
    told.change(3, deletes=["id = 3"])
    told.change(4, inserts=[{"id": 4}], deletes=["id = 2"])
    told.change(5, deletes=["id = 99"])  # nothing: Delta commits nothing
    seen = [one["constituents"][0] for one in told.seen.firings["a"]]
    assert [one["operation"] for one in seen] == ["WRITE", "UPDATE", "DELETE", "MERGE"]
    assert [one["version"] for one in seen] == [1, 2, 3, 4]
    assert [one["read_version"] for one in seen] == [0, 1, 2, 3]
    assert dict(seen[0]["operation_metrics"]) == {"numOutputRows": "2"}
    assert dict(seen[3]["operation_metrics"])["numTargetRowsDeleted"] == "1"


def test_a_merge_that_meets_no_row_is_a_commit_where_rows_are_there() -> None:
    text = HEAD.replace("events:", "events:\n  done: {on: commit, table: items}")
    told = Told(text + "  a: {on: done, per: [operation, changes_rows]}", items=[{"id": 1}])
    told.change(1, updates=[("id = 9", {"note": "x"})]).change(2, deletes=["id = 9"])
    told.change(3, updates=[("id = 9", {"note": "x"})], deletes=["id = 8"])
    told.change(4, updates=[("id = 1", {"note": "x"})], deletes=["id = 8"])
    told.change(5, deletes=["true"])
    told.change(6, updates=[("id = 9", {"note": "x"})], deletes=["id = 8"])
    told.insert(7)
    assert [(*one["key"].values(), one["at"].second) for one in told.seen.firings["a"]] == [
        ("MERGE", True, 3), ("MERGE", True, 4), ("DELETE", True, 5), ("WRITE", False, 7),
    ]  # fmt: skip


def test_a_load_without_rows_is_a_commit() -> None:
    text = HEAD.replace("rules:", "  commit: {on: commit, table: items}\nrules:")
    told = Told(text + "  a: {on: commit}\n  b: {on: new}")
    told.insert(1).insert(2, {"id": 1})
    assert [len(told.fired(rule)) for rule in "ab"] == [2, 1]


def test_columns_that_are_added_are_a_commit_and_null_in_the_rows_that_are_there() -> None:
    text = HEAD.replace("rules:", "  commit: {on: commit, table: items}\nrules:")
    text += "  a: {on: commit, per: [operation, changes_rows, version]}\n"
    text += "  b: {on: new, per: id}\n  c: {on: changed, per: id}\n  d: {on: new ; gone, per: id}"
    told = Told(text, items=[{"id": 1}])
    told.insert(1, {"id": 2}).widen(2, unit="string", n="int")
    told.insert(3, {"id": 3, "unit": "C"}).change(4, updates=[("unit is null", {"n": 5})])
    told.change(5, deletes=["n = 5"]).widen(6, last="date")
    keys = [tuple(one["key"].values()) for one in told.seen.firings["a"]]
    assert keys[1] == ("ADD COLUMNS", False, 2)
    assert [key[0] for key in keys] == [
        *("WRITE", "ADD COLUMNS", "WRITE", "UPDATE", "DELETE", "ADD COLUMNS")
    ]
    assert [told.fired(rule) for rule in "bcd"] == [[1, 3], [4, 4], [5]]
    null = {"amount": None, "note": None, "last": None}
    assert told.seen.tables["items"] == [{"id": 3, "unit": "C", "n": None, **null}]
    anew = Told(told.world._worlds)
    anew.insert(1, {"id": 1})
    assert anew.seen.tables["items"] == [{"id": 1, "amount": None, "note": None}]


def test_g25_a_where_leaves_rows_out_and_rejects_those_on_which_it_raises() -> None:
    text = HEAD.replace("new: {on: insert", "new: {on: insert, where: 10 / id > 2")
    told = Told(text + "  a: {on: new, per: id}")
    told.insert(1, {"id": 1}, {"id": 0}, {"id": 9}, {"id": 4})
    assert sorted(one["key"]["id"] for one in told.seen.firings["a"]) == [1, 4]
    [rejected] = told.seen.rejected
    assert (rejected["event"], rejected["row"]["id"]) == ("new", 0)
    assert "10 / id > 2" in rejected["reason"]


def test_rows_without_their_event_time_are_rejected() -> None:
    text = HEAD.replace("new: {on: insert", "new: {on: insert, time: at, lateness: 10 min")
    made = worlds(text + "  a: {on: new}", items={"id": "bigint", "at": "timestamp"})
    told = Told(made)
    told.insert(1, {"id": 1}, {"id": 2, "at": "2026-03-02T09:00:00.500"}).at(3600)
    assert told.fired("a") == [0.5]
    assert [one["row"]["id"] for one in told.seen.rejected] == [1]


def test_timers_fire_at_their_instants_and_only_then() -> None:
    told = Told(HEAD + '  a: {on: "not(gone)[new, [5 s]]", per: id}')
    told.insert(1, {"id": 1}).at(5.999)
    assert told.fired("a") == []
    told.at(6)
    assert told.fired("a") == [6]
    fired_at = told.seen.firings["a"][0]["fired_at"].timestamp()
    assert round(fired_at - BEGIN / SECOND, 6) == 6.000998


def test_what_happens_at_the_instant_of_a_timer_happens_together_with_it() -> None:
    """A bound is met exactly at its instant, and not a millisecond later."""
    told = Told(HEAD + '  a: {on: "new ; gone within 5 s", per: id}')
    told.insert(1, {"id": 1}).change(6, deletes=["id = 1"])
    told.insert(7, {"id": 2}).change(12.001, deletes=["id = 2"])
    assert told.fired("a") == [6]


def test_clock_events_occur_as_time_goes_by_each_at_its_own_instant() -> None:
    text = HEAD.replace("rules:", "  six: {cron: '0 */6 * * *', timezone: UTC}\nrules:")
    told = Told(text + "  a: {on: six}")
    told.at(24 * 3600)
    assert told.fired("a") == [3600 * hour for hour in (3, 9, 15, 21)]  # it begins at nine
    late = [one["fired_at"] - one["at"] for one in told.seen.firings["a"]]
    assert {one.total_seconds() for one in late} == {0.000998}


def test_failed_attempts_wait_for_the_clock() -> None:
    rules = "  a: {on: new, per: id, retry: {attempts: 3, backoff: 10s..40s}, "
    rules += "do: [{signal: {told: {id: id}}}]}\n  b: {on: told}"
    told = Told(HEAD + rules).fail("a", 2)
    told.insert(1, {"id": 1}).at(8)
    assert told.seen.signals == {}
    told.at(20)
    assert told.seen.signals == {}  # again after 7.5 s to 10 s, then after twice that
    told.at(40)
    assert told.seen.signals == {"told": [{"id": 1}]}
    [fired] = told.fired("b")
    assert 1 + 7.5 + 15 < fired < 1 + 10 + 20.01
    assert not told.seen.dead


def test_an_action_without_further_attempts_is_dead() -> None:
    rules = "  a: {on: new, per: id, retry: {attempts: 2, backoff: 1s..1s}, "
    rules += "do: [{signal: {told: {id: id}}}]}"
    told = Told(HEAD + rules).fail("a", 2)
    told.insert(1, {"id": 1}).at(60)
    [dead] = told.seen.dead
    assert dead == {"rule": "a", "kind": "signal", "error": "failed by the test", "attempts": 2}
    told.insert(61, {"id": 2})
    assert told.seen.signals == {"told": [{"id": 2}]}


def test_g23_an_alternative_is_done_in_place_of_an_action_that_is_late() -> None:
    rules = "  a: {on: new, per: id, retry: {attempts: 9, backoff: 1h..1h}, within: 5 min, "
    rules += f"do: [{SQL}], otherwise: [{{signal: {{told: {{id: id}}}}}}]}}"
    told = Told(HEAD + rules).fail("a", 2)
    told.insert(1, {"id": 1}).insert(2, {"id": 2}).at(200)
    assert told.seen.signals == {}
    told.at(400)
    assert [one["id"] for one in told.seen.signals["told"]] == [1, 2]  # 2 waits behind 1


def test_damping_remembers() -> None:
    rules = "  a: {on: new, per: id, cooldown: 10 s}"
    rules += "\n  b: {on: new, dedupe: {by: [note], within: 1 h}}"
    told = Told(HEAD + rules)
    for second in (1, 5, 12):
        told.insert(second, {"id": 1, "note": f"at {second % 4}"})
    assert [damped for _, damped in told.outcomes("a")] == [None, "cooldown", None]
    assert [damped for _, damped in told.outcomes("b")] == [None, "dedupe", None]


def test_a_rule_is_switched_off_and_on_by_actions() -> None:
    rules = "  a: {on: new, per: id}\n  off: {on: told, do: [{disable: a}]}"
    rules += "\n  on: {on: changed, do: [{enable: a}]}"
    told = Told(HEAD + rules, items=[{"id": 1}])
    told.insert(1, {"id": 2}).signal(2, "told", id=1).insert(3, {"id": 3})
    told.change(4, updates=[("id = 1", {"note": "x"})]).insert(5, {"id": 4})
    assert told.fired("a") == [1, 5]


def test_signals_cause_each_other_a_millisecond_apart_and_deeper_each_time() -> None:
    rules = "  a: {on: new, per: id, do: [{signal: {told: {id: id + 1}}}]}"
    rules += "\n  b: {on: told, if: max(id) < 4, per: id, do: [{signal: {told: {id: id + 1}}}]}"
    told = Told(HEAD + rules)
    told.insert(1, {"id": 1})
    assert told.fired("b") == [1.001, 1.002, 1.003]
    assert [one["depth"] for one in told.seen.firings["b"]] == [2, 3, 4]
    assert told.seen.signals == {"told": [{"id": 2}, {"id": 3}, {"id": 4}]}


def test_what_a_test_raises_is_no_signal_of_an_action() -> None:
    told = Told(HEAD + "  a: {on: told, per: id}")
    told.signal(1, "told", id=4)
    assert told.fired("a") == [1]
    assert told.seen.signals == {}


def test_signals_and_emissions_without_fields_are_empty_rows() -> None:
    script = SCRIPT.replace("{long id; long n;}", "{}").replace("{id: x.id, n: n}", "")
    text = HEAD.replace("told:", "ping: {signal: {}}\n  told:").replace(
        "rules:\n", f"{script}rules:\n"
    )
    told = Told(text + "  a: {on: new, do: [{signal: {ping: {}}}]}\n  b: {on: counted}")
    told.insert(1, {"id": 1})
    assert told.seen.signals == {"ping": [{}]}
    assert [one.keys() for one in told.seen.emissions["counted"]] == [{"time"}]


def test_rows_that_any_of_several_deletes_names_are_gone() -> None:
    told = Told(HEAD + "  a: {on: gone, per: id}", items=[{"id": n} for n in (1, 2, 3)])
    told.change(1, deletes=["id = 1", "id = 3"])
    assert [one["key"]["id"] for one in told.seen.firings["a"]] == [1, 3]


def test_constituents_are_occurrences_and_their_columns_alone() -> None:
    rules = (
        "  a: {on: 'new + [5 s]'}\n  b: {on: 'x:(new) ; y:(new)', if: max(x_start) < max(y_end)}"
    )
    told = Told(HEAD + rules)
    told.insert(1, {"id": 1}).insert(2, {"id": 2}).at(10)
    assert told.seen.firings["a"][0]["constituents"] == []
    names = {"event", "time", "id", "amount", "note"}
    assert [one.keys() for one in told.seen.firings["b"][0]["constituents"]] == [names, names]


def test_an_entry_that_is_held_is_not_dead() -> None:
    rules = "  a: {on: new, per: id, retry: {attempts: 1}, on_dead: hold, "
    rules += "do: [{signal: {told: {id: id}}}]}"
    told = Told(HEAD + rules).fail("a", 1)
    told.insert(1, {"id": 1})
    assert (told.seen.dead, told.seen.signals) == ([], {})


def test_a_field_that_raises_is_a_failed_attempt() -> None:
    rules = "  a: {on: new, per: id, retry: {attempts: 1}, do: [{webhook: "
    rules += "{url: 'https://x.example.org/a', body: {share: max(10 / id)}}}]}"
    told = Told(HEAD + rules)
    told.insert(1, {"id": 0}).insert(2, {"id": 4}).insert(3, {"id": 5})
    assert [one["share"] for one in told.seen.webhooks["a"]] == [2.5, 2.0]
    [dead] = told.seen.dead
    assert dead["error"] == "[FIELD] a field of rule a raises"


def test_g02_a_rule_sees_late_rows_of_before_the_beginning() -> None:
    text = HEAD.replace("new: {on: insert", "new: {on: insert, time: at, lateness: 10 min")
    told = Told(worlds(text + "  a: {on: new}", items={"id": "bigint", "at": "timestamp"}))
    told.insert(1, {"id": 1, "at": "2026-03-02T08:58:00"}).at(3600)
    assert told.fired("a") == [-120]


def test_the_end_and_the_failure_of_actions_are_events() -> None:
    rules = f"  a: {{on: new, per: id, retry: {{attempts: 1}}, for_each: firing, do: [{SQL}]}}"
    rules += "\n  b: {on: end_of a, per: id}\n  c: {on: failed a, per: id}"
    told = Told(HEAD + rules).fail("a", 1)
    told.insert(1, {"id": 1}).insert(2, {"id": 2})
    assert [one["key"] for one in told.seen.firings["c"]] == [{"id": 1}]
    assert [one["key"] for one in told.seen.firings["b"]] == [{"id": 2}]
    assert told.seen.signals == {}


def test_webhooks_are_recorded_and_fail_as_other_actions_do() -> None:
    rules = "  a: {on: new, retry: {attempts: 2, backoff: 1s..1s}, do: [{webhook: "
    rules += "{url: 'https://x.example.org/a', secret: TIDEGATE_SECRET_OPS, "
    rules += "body: {id: max(id), amount: sum(amount)}}}]}"
    told = Told(HEAD + rules).fail("a", 1)
    told.insert(1, {"id": 1, "amount": 2})
    assert told.seen.webhooks == {}
    told.at(3)
    assert told.seen.webhooks == {"a": [{"id": 1, "amount": Decimal("2.00")}]}


def test_what_scripts_emit_is_shown_and_is_an_event() -> None:
    told = Told(SCRIPTED + "  a: {on: counted, if: max(n) = 2}")
    told.insert(1, {"id": 5}).insert(2, {"id": 6})
    emitted = told.seen.emissions["counted"]
    assert [(one["id"], one["n"]) for one in emitted] == [(5, 1), (6, 2)]
    assert [one["time"].timestamp() - BEGIN / SECOND for one in emitted] == [1, 2]
    assert told.outcomes("a") == [("failed", None), ("held", None)]


def test_g25_a_condition_that_raises_is_dead_for_all_firings_of_its_bucket() -> None:
    told = Told(HEAD + "  a: {on: new, per: id, if: max(10 / id) > 2}")
    told.insert(1, {"id": 1}, {"id": 0}).insert(2, {"id": 3})
    assert [one for one, _ in told.outcomes("a")] == ["dead", "dead", "held"]
    [dead] = told.seen.dead
    assert (dead["rule"], dead["kind"]) == ("a", "condition")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("if: {sql: SELECT firing_id FROM event}", "the condition of rule a needs Spark"),
        ("coupling: detached, if: {sql: SELECT firing_id FROM event}", "the condition of rule a"),
        ("if: max(upper(note)) = 'A'", "the condition of rule a needs Spark"),
        ("if: sqrt(max(id)) > 2", "the condition of rule a needs Spark"),
        ("do: [{signal: {told: {id: cast(sqrt(max(id)) as bigint)}}}]", "a field of rule a"),
    ],
)
def test_what_only_spark_can_tell_is_said(rule: str, said: str) -> None:
    told = Told(HEAD + f"  a: {{on: new, {rule}}}")
    with pytest.raises(EngineError, match=said) as raised:
        told.insert(1, {"id": 1, "note": "é"})
    assert raised.value.code == "needs-spark"


def test_a_where_outside_the_list_needs_spark_once_it_is_asked() -> None:
    text = HEAD.replace("new: {on: insert", "new: {on: insert, where: sqrt(id) > 2")
    told = Told(text + "  a: {on: new}")
    with pytest.raises(EngineError, match="`sqrt") as raised:
        told.insert(1, {"id": 1})
    assert raised.value.code == "needs-spark"


def test_a_sample_needs_spark_once_it_is_taken() -> None:
    told = Told(HEAD + "  a: {on: \"P*(told, [5 s]: 'SELECT max(id) FROM out', gone)\"}")
    told.signal(1, "told", id=1).insert(2, {"id": 1}).at(10)
    with pytest.raises(EngineError, match="sample") as raised:
        told.change(11, deletes=["true"])
    assert raised.value.code == "needs-spark"


def test_a_value_that_does_not_fit_is_refused_with_its_place_before_anything_changes() -> None:
    told = Told(HEAD + "  a: {on: new}", items=[{"id": 1}])
    wrong = {
        "out": TableChange(PLACE, (row(id=1),)),
        "items": TableChange(PLACE, (), (Update("true", PLACE, row(amount="much")),)),
    }
    with pytest.raises(InputError) as raised:
        told.world.commit(wrong)
    assert raised.value.problems[0].place == PLACE
    assert told.seen.tables["out"] == []


def test_a_predicate_of_a_step_that_raises_is_refused_with_its_place() -> None:
    told = Told(HEAD + "  a: {on: new}", items=[{"id": 0}])
    with pytest.raises(InputError, match="raises on 1 of the rows") as raised:
        told.change(1, deletes=["1 / id > 0"])
    assert raised.value.problems[0].place == PLACE


def test_actions_that_cause_themselves_without_end_are_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidegate.engine.replay.memory.clock.ROUNDS_MAX", 100)
    text = "settings: {max_cascade_depth: 100000, firings_per_rule_per_minute_max: 0}\n" + HEAD
    told = Told(text + "  a: {on: told, per: id, do: [{signal: {told: {id: id}}}]}")
    with pytest.raises(EngineError, match="caused each other") as raised:
        told.signal(1, "told", id=1)
    assert raised.value.code == "no-end"


def test_too_many_timers_between_two_steps_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.engine.replay.memory.clock.STOPS_MAX", 100)
    told = Told(HEAD + '  a: {on: "P(new, [1 s], gone)"}')
    told.insert(1, {"id": 1})
    with pytest.raises(EngineError, match="are due between two steps") as raised:
        told.at(200)
    assert raised.value.code == "no-end"


def test_a_clock_that_goes_on_for_too_long_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = HEAD.replace("rules:", "  tick: {cron: '* * * * *', timezone: UTC}\nrules:")
    told = Told(text + "  a: {on: new ; tick}")
    monkeypatch.setattr("tidegate.engine.replay.memory.clock._take", None)  # nothing is taken
    for days in (70, 365 * 7_973):
        with pytest.raises(EngineError, match="more than 100,000 things are due") as raised:
            told.at(86_400 * days)
        assert raised.value.code == "no-end"
    with pytest.raises(TypeError):
        told.at(86_400 * 69)


def test_worlds_of_one_file_know_nothing_of_each_other() -> None:
    made = worlds(SCRIPTED + "  a: {on: new ; new}")
    one, other = Told(made), Told(made)
    one.insert(1, {"id": 1})
    other.insert(1, {"id": 2}).insert(2, {"id": 3})
    one.insert(3, {"id": 4})
    assert (one.fired("a"), other.fired("a")) == ([3], [2])
    assert [each["id"] for each in one.seen.emissions["counted"]] == [1, 4]
    assert [each["n"] for each in other.seen.emissions["counted"]] == [1, 2]


def test_a_second_commit_at_an_instant_that_was_taken_stands_a_millisecond_later() -> None:
    told = Told(HEAD + "  a: {on: new}")
    told.insert(1, {"id": 1}).insert(1, {"id": 2})
    assert told.fired("a") == [1, 1.001]


def test_defaults_are_of_the_columns_that_an_inserted_row_leaves_out() -> None:
    made = worlds(HEAD + "  a: {on: new}")
    made.defaults = {"items": row(note="x", amount=1)}
    told = Told(made, items=[{"id": 1}])
    told.insert(1, {"id": 2, "note": None})
    notes = [one["note"] for one in told.seen.tables["items"]]
    assert notes == ["x", None]


def test_a_step_during_the_actions_of_the_one_before_is_refused() -> None:
    text = HEAD + "  a: {on: new, do: [{signal: {told: {id: max(id)}}}, {signal: {told: {id: 0}}}]}"
    told = Told(text)
    told.insert(1, {"id": 7})
    with pytest.raises(EngineError, match=r"go on until .*:01\.002000Z: each takes 1 ms") as caught:
        told.insert(1.001, {"id": 8})
    assert caught.value.code == "step-too-early"
    told.insert(1.003, {"id": 8})
    assert told.fired("a") == [1, 1.003]
