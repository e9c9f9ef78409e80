"""`explain`: what it says of a rulebook, in each format."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tidegate import load
from tidegate.engine.explain.explanation import FORMATS, explain
from tidegate.engine.loop.compiled_rulebook import digests_of
from tidegate.rules.errors import InputError

SHOP = """\
rulebook: shop
timezone: Europe/Berlin
tables:
  orders: {path: /l/orders, key: [id]}
  alerts: {path: /l/alerts}
events:
  placed: {on: insert, table: orders, columns: [customer, id]}
  changed: {on: update, table: orders, columns: [customer, id]}
  alerted: {on: insert, table: alerts, columns: [customer]}
  hb: {signal: {customer: bigint}}
  ask: {signal: {customer: bigint}}
  opening: {at: "<(08:00:00)*/*/*>"}
rules:
  quick:
    on: ((placed ; changed) - hb) within 5 min
    per: customer
    do:
      - signal: ask
  same: {on: placed ; changed within 5 min without hb within 9 min, per: customer}
  slow: {on: (placed ; changed) ; hb, per: customer}
  asked:
    on: not(hb)[ask, [5 min]]
    per: customer
    do:
      - sql: INSERT INTO alerts SELECT customer FROM event
  loop:
    on: alerted ; asked within 1 h
    per: customer
    do:
      - sql: |
          MERGE INTO alerts a USING event e ON a.customer = e.customer
          WHEN MATCHED THEN UPDATE SET seen = true
      - sql: UPDATE orders SET seen = true
  day: {on: "A*(opening, hb, [8 h])", context: chronicle}
"""
SAY_HOW_LONG = "say how long `placed ; changed ; hb` may take: a `within` of your choice"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.yaml"
    file.write_text(SHOP)
    return file


def as_json(file: Path, rule: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(explain(file, rule, "json"))
    return found


def rule(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    (one,) = (r for r in found["rules"] if r["name"] == name)
    return dict(one)


def test_equal_expressions_of_two_rules_are_one_node(shop: Path) -> None:
    found = as_json(shop)
    quick, same, slow = (rule(found, name) for name in ("quick", "same", "slow"))
    assert quick["normalised"] == same["normalised"] == "(placed ; changed) without hb within 5 min"
    assert quick["root"] == same["root"] != slow["root"]
    (root,) = (n for n in found["nodes"] if n["id"] == quick["root"])
    assert (root["operator"], root["rules"]) == ("within", ["quick", "same"])


def test_equal_expressions_that_remember_unlike_long_are_two_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "two.yaml"
    file.write_text(
        "rulebook: two\nevents: {a: {signal: {}}, b: {signal: {}}}\n"
        "rules: {r: {on: a ; b within 5 s}, s: {on: a ; b within 9 s}, t: {on: b or (a ; b)}}\n"
    )
    found = [re.split(" {2,}", line) for line in explain(file).splitlines()]
    stores = [cells[-2] for cells in found if cells[-1] == "a ; b" and len(cells) > 5]
    one = "1 instance, 1 occurrence"
    assert stores == [f"{one}, for 5 s", f"{one}, for 9 s", one]


def test_operands_stand_before_the_node_that_reads_them(shop: Path) -> None:
    seen: set[str] = set()
    for node in as_json(shop)["nodes"]:
        assert set(node["operands"]) <= seen
        seen.add(node["id"])
    assert len(seen) > 5


def test_keyed_and_unkeyed_events_are_two_nodes(shop: Path) -> None:
    nodes = [n for n in as_json(shop)["nodes"] if n["expression"] == "hb"]
    assert [n["keys"] for n in nodes] == [{"hb": ["customer"]}, {}]


def test_plain_names_are_said_as_written_and_detect_the_same(tmp_path: Path) -> None:
    pairs = {
        "during(a, b, c)": "A(a, b, c)",
        "collect(a, b, [5 min])": "A*(a, b, [5 min])",
        "ticks(a, [5 s], c)": "P(a, [5 s], c)",
        "a then no b for 1 h": "not(b)[a, [1 h]]",
    }
    rules = "".join(
        f"  plain{n}: {{on: '{plain}', context: latest}}\n"
        f"  snoop{n}: {{on: '{snoop}', context: restricted}}\n"
        for n, (plain, snoop) in enumerate(pairs.items())
    )
    file = tmp_path / "plain.yaml"
    events = "events: {a: {signal: {}}, b: {signal: {}}, c: {signal: {}}}\n"
    file.write_text(f"rulebook: plain\n{events}rules:\n{rules}")
    found, text = as_json(file), explain(file)
    digests = digests_of(load(file))
    for n, (plain, snoop) in enumerate(pairs.items()):
        one, other = rule(found, f"plain{n}"), rule(found, f"snoop{n}")
        assert (one["expression"], one["context"]) == (plain, "latest")
        assert (other["expression"], other["context"]) == (snoop, "restricted")
        assert (one["normalised"], one["root"]) == (other["normalised"], other["root"])
        assert digests[f"plain{n}"] == digests[f"snoop{n}"]
        assert f"rule plain{n} (context latest)\n  Fires " in text
        assert f"\n  on          {plain}\n" in text


def test_sentences_come_first_and_other_contexts_on_demand(shop: Path) -> None:
    slow = rule(as_json(shop), "slow")
    assert [*slow["choices"]] == [*slow["stores"]]
    assert slow["choices"]["restricted"] in slow["sentences"]
    said, whole = (" ".join(explain(shop, "slow", verbose=v).split()) for v in (False, True))
    head = f"rule slow (context restricted, per customer) {' '.join(slow['sentences'])} on "
    for text in (said, whole):
        assert text.startswith(f"rulebook shop {head}")
    for context, choice in [*slow["choices"].items()][1:]:
        assert choice not in said
        assert f"in {context}, it stores " not in said
        assert f"in {context}, it stores " in whole
        assert choice in whole


def test_a_rule_used_as_event_leads_to_its_own_graph(shop: Path) -> None:
    found = as_json(shop, "loop")
    (asked,) = (n for n in found["nodes"] if n["operator"] == "rule")
    (below,) = (n for n in found["nodes"] if [n["id"]] == asked["operands"])
    assert below["expression"] == "not(hb)[ask, [5 min]]"


def test_g13_what_is_stored_is_said_for_every_context(shop: Path) -> None:
    found = as_json(shop)
    quick, slow, day = (rule(found, name)["stores"] for name in ("quick", "slow", "day"))
    assert next(iter(quick)) == "restricted"
    assert next(iter(day)) == "chronicle"
    assert len(quick) == len(day) == 6
    assert quick["restricted"]["instances_max"] == 2
    assert quick["restricted"]["forgets_micros"] == 300_000_000
    assert slow["restricted"]["instances_max"] == 2
    assert slow["restricted"]["forgets_micros"] is None
    assert slow["chronicle"]["span_micros"] is None
    assert slow["chronicle"]["advice"] == [SAY_HOW_LONG]


def test_g13_a_keyed_rule_that_never_forgets_is_warned_of(shop: Path) -> None:
    (warning,) = (w for w in as_json(shop)["warnings"] if w["code"] == "never-forgets")
    assert warning["message"].startswith("slow never forgets")
    assert warning["hint"] == SAY_HOW_LONG
    assert warning["line"] == 20


def test_g13_a_session_is_said_to_forget_a_key_that_pauses(tmp_path: Path) -> None:
    file = tmp_path / "visits.yaml"
    file.write_text(
        "rulebook: visits\nevents: {click: {signal: {k: bigint}}}\n"
        "rules: {visit: {on: {session: 30 min, of: click}, per: k}}\n"
    )
    assert "no bound; forgets a key after 30 min without a row\n" in explain(file, None, "text")
    (stores,) = rule(as_json(file), "visit")["stores"].values()
    assert (stores["forgets_micros"], stores["pause_micros"]) == (None, 1_800_000_000)
    assert [one["code"] for one in as_json(file)["warnings"]] == ["unbounded"]


@pytest.mark.parametrize(
    ("asked", "forgets"),
    [
        ("fire: avg(v) > 8", True),
        ("fire: avg(v) > 8, rearm: avg(v) < 7", False),
        ("fire: avg(v) > 8, rearm: avg(v) < 7 or count(*) = 0", True),
        ("fire: avg(v) > 8, rearm: count(v) <= 0.1 * count(*)", True),
        ("fire: avg(v) > 8, rearm: not (abs(max(v)) > 7)", False),
        ("fire: avg(v) > 8, rearm: max(v) is null and -count(v) + 1 > 0", True),
        ("fire: count(*) < 8", False),
        ("fire: count(*) < 8 and avg(v) > 1", True),
    ],
)
def test_g13_a_crossing_forgets_a_key_if_an_empty_window_is_armed(
    tmp_path: Path, asked: str, forgets: bool
) -> None:
    file = tmp_path / "over.yaml"
    file.write_text(
        "rulebook: over\nevents: {x: {signal: {k: bigint, v: double}}}\n"
        f"rules:\n  r:\n    on: {{over: {{window: 1 min, of: x, {asked}}}}}\n    per: k\n"
    )
    said = "forgets a key after 1 min without a row" if forgets else "never forgets a key"
    assert f"what arrives in 1 min; {said}\n" in explain(file, None, "text")
    codes = [one["code"] for one in as_json(file)["warnings"]]
    assert codes == ([] if forgets else ["never-forgets"])


def test_timers_are_listed(shop: Path) -> None:
    found = as_json(shop)
    assert rule(found, "quick")["timers"] == []
    assert rule(found, "asked")["timers"] == ["5 min after each `ask`"]
    assert rule(found, "day")["timers"] == [
        "8 h after each `opening`",
        "opening: <(08:00:00)*/*/*> (Europe/Berlin)",
    ]


def test_what_triggers_what(shop: Path) -> None:
    found = as_json(shop)
    edges = {(t["rule"], t["kind"], t["event"], t["triggers"]) for t in found["triggers"]}
    assert edges == {
        ("quick", "signal", "ask", "asked"),
        ("asked", "table", "alerted", "loop"),
        ("asked", "rule", "asked", "loop"),
        ("loop", "table", "changed", "quick"),  # an update: `placed` and `alerted` are inserts
        ("loop", "table", "changed", "same"),
        ("loop", "table", "changed", "slow"),
    }
    assert found["cycles"] == [["asked", "loop", "quick"]]
    assert rule(found, "loop")["writes"] == ["alerts", "orders"]
    assert rule(found, "loop")["watched"] == ["alerts", "orders"]
    text = explain(shop, "loop", "text")
    assert "an event type is of alerts, orders: what is written there shares no commit" in text


def test_g16_what_nobody_watches_is_not_said_to_be_watched(tmp_path: Path) -> None:
    file = tmp_path / "quiet.yaml"
    file.write_text(
        "rulebook: quiet\ntables: {t: {path: /t}, out: {path: /out}}\n"
        "events: {i: {on: insert, table: t}}\n"
        'rules: {r: {on: i, do: ["INSERT INTO out SELECT 1 FROM event"]}}\n'
    )
    assert rule(as_json(file), "r")["watched"] == []
    assert "shares no commit" not in explain(file, None, "text")


@pytest.mark.parametrize(
    ("statement", "triggered"),
    [
        ("INSERT INTO t SELECT 1", ["i", "c"]),
        ("insert overwrite table t select 1", ["i", "d", "c"]),
        ("DELETE FROM t", ["d", "c"]),
        ("UPDATE `t` SET x = 1", ["u", "c"]),
        ("MERGE INTO t USING event ON true WHEN MATCHED THEN DELETE", ["d", "c"]),
        ("WITH e AS (SELECT 1) INSERT INTO t SELECT * FROM e", ["i", "c"]),
        ("INSERT INTO other SELECT 'insert into t' FROM t -- update t", []),
    ],
)
def test_the_kind_of_a_statement_says_which_events_it_raises(
    tmp_path: Path, statement: str, triggered: list[str]
) -> None:
    kinds = {"i": "insert", "u": "update", "d": "delete", "c": "change"}
    events = "".join(f"  on_{n}: {{on: {kind}, table: t}}\n" for n, kind in kinds.items())
    rules = "".join(f"  {n}: {{on: on_{n}}}\n" for n in kinds)
    file = tmp_path / "t.yaml"
    file.write_text(
        "rulebook: t\ntables: {t: {path: /t, key: [x]}, other: {path: /o}}\n"
        f"events:\n  go: {{signal: {{}}}}\n{events}"
        f"rules:\n{rules}  writer:\n    on: go\n    at_least_once: true\n"
        f"    do:\n      - sql: |\n          {statement}\n"
    )
    assert [t["triggers"] for t in as_json(file, "writer")["triggers"]] == triggered


def test_what_a_rule_says_of_itself_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "said.yaml"
    file.write_text(
        "rulebook: said\nevents: {a: {signal: {}}}\nrules:\n"
        "  r:\n    description: |\n      an a,\n      at last\n"
        "    severity: warning\n    labels: {team: fraud, on_call: '7'}\n    on: a\n"
        "  s: {on: a}\n"
    )
    said, silent = (rule(as_json(file), name) for name in "rs")
    assert said["description"] == "an a,\nat last\n"
    assert (said["severity"], said["labels"]) == ("warning", {"team": "fraud", "on_call": "7"})
    assert (silent["description"], silent["severity"], silent["labels"]) == ("", None, {})
    assert (
        "  description an a, at last\n  severity    warning\n"
        "  labels      team=fraud, on_call=7\n  on          a\n"
    ) in explain(file)


def test_s10_edges_are_shown_as_they_are_written(tmp_path: Path) -> None:
    file = tmp_path / "edges.yaml"
    file.write_text(
        "rulebook: edges\ntables: {t: {path: /t, key: [k]}}\n"
        "events: {moved: {on: update, table: t}, ask: {signal: {k: bigint}}}\nrules:\n"
        "  pay: {on: begin_of moved or ask, per: k, do: {signal: ask}}\n"
        "  done: {on: end_of pay or failed(pay), per: k}\n"
    )
    found = as_json(file)
    leaves = {n["expression"]: n["keys"] for n in found["nodes"] if not n["operands"]}
    assert leaves == {name: {name: ["k"]} for name in leaves}
    assert {*leaves} == {"begin_of moved", "ask", "end_of pay", "failed pay"}
    assert "  pay -> end_of pay -> done\n  pay -> failed pay -> done\n" in explain(file)
    assert '-->|"end_of pay, failed pay"| t_done' in explain(file, None, "mermaid")


def test_one_rule_alone(shop: Path) -> None:
    found = as_json(shop, "asked")
    assert [r["name"] for r in found["rules"]] == ["asked"]
    assert {n["expression"] for n in found["nodes"]} == {"hb", "ask", "not(hb)[ask, [5 min]]"}
    assert [w["code"] for w in found["warnings"]] == ["termination", "confluence", "by-position"]


def test_a_rule_that_is_not_there(shop: Path) -> None:
    with pytest.raises(InputError, match=r"no rule 'qick'\n.*did you mean 'quick'"):
        explain(shop, "qick")


def test_text_shows_rules_graph_triggers_and_cycles(shop: Path) -> None:
    said = explain(shop)
    assert "rule quick (context restricted, per customer)\n" in said
    assert "  stores      2 instances, 1 occurrence; forgets after 5 min\n" in said
    assert "  quick -> signal ask -> asked\n" in said
    assert "cycle: asked -> loop -> quick -> asked\n" in said
    cycle = "asked, loop and quick trigger each other through signal ask, table alerts"
    assert cycle in " ".join(said.split())
    why = "keeps every opening of the last 5 min, for each has an end of its own "
    assert why in " ".join(said.split())


def test_text_fits_a_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"something_that_happened_{n}" for n in range(4)]
    events = ", ".join(f"{name}: {{signal: {{x: int}}}}" for name in names)
    on, other = " ; ".join(names), " and ".join(names)
    file = tmp_path / "wide.yaml"
    file.write_text(
        f"rulebook: wide\nevents: {{{events}}}\nrules:\n"
        f"  a_rule_of_many: {{on: {on}, per: x, context: chronicle}}\n"
        f"  another_rule_of_many: {{on: ({on}) without ({other}), per: x}}\n"
        f"  a_searched_rule_of_many: {{on: ({on}) without ({other}), context: unrestricted}}\n"
    )
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = explain(file).splitlines()
    assert max(map(len, lines)) <= 100
    table = lines[lines.index("graph (what each node stores per key)") + 1 :]
    assert table[0].split() == ["node", "operator", "operands", "rules", "stores", "expression"]
    at = table[0].index("expression")
    assert names[0] in {line[at:] for line in table}
    monkeypatch.setenv("COLUMNS", "300")
    assert f"  on          {on}" in explain(file).splitlines()


def test_mermaid_escapes_what_its_language_uses(shop: Path) -> None:
    said = explain(shop, "day", "mermaid")
    assert said.startswith("flowchart LR\n")
    assert '["A*(opening, hb, [8 h])<br/>' in said
    assert said.count("-->") == 3


def test_svg_draws_every_box_inside_the_picture(shop: Path) -> None:
    space = "{http://www.w3.org/2000/svg}"
    root = ET.fromstring(explain(shop, None, "svg"))
    found = as_json(shop)
    boxes = root.findall(f"{space}g")
    in_triggers = {t[end] for t in found["triggers"] for end in ("rule", "triggers")}
    assert len(boxes) == len(found["nodes"]) + len(found["rules"]) + len(in_triggers)
    for box in boxes:
        rect = box.find(f"{space}rect")
        assert rect is not None
        x, y, width, height = (float(rect.attrib[k]) for k in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + width <= float(root.attrib["width"])
        assert y + height <= float(root.attrib["height"])


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("example", ["bank", "order", "stock"])
def test_the_examples_are_explained_in_every_format(example: str, format_: str) -> None:
    file = Path(__file__).parents[2] / "rules" / "examples" / example / f"{example}.yaml"
    assert explain(file, None, format_).endswith("\n")


def test_the_command_imports_nothing_heavy(shop: Path) -> None:
    script = (
        "import sys, tidegate.engine.cli.main\n"
        f"sys.argv = ['tidegate', 'explain', {str(shop)!r}]\n"
        "try: tidegate.engine.cli.main.main()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'pyspark', 'sqlalchemy', 'py4j'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_of_many_edges_the_first_are_shown_and_the_others_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.rules.analysis.triggers.TRIGGERS_MAX", 7)
    lines = "".join(
        f"  r{n}: {{on: e, do: [{{sql: INSERT INTO t (a) SELECT 1 FROM event}}]}}\n"
        for n in range(5)
    )
    file = tmp_path / "many.yaml"
    head = "rulebook: many\ntables: {t: {path: /t}}\nevents: {e: {on: insert, table: t}}\n"
    file.write_text(f"{head}rules:\n{lines}")
    found = as_json(file)
    assert (len(found["triggers"]), found["triggers_more"]) == (7, 18)
    assert found["cycles"] == [["r0", "r1", "r2", "r3", "r4"]]
    assert ".. and 18 more" in explain(file)
    only = as_json(file, "r3")
    assert (len(only["triggers"]), only["triggers_more"]) == (7, 2)


def test_what_damps_a_rule_is_shown_with_what_it_remembers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    file = tmp_path / "hot.yaml"
    file.write_text(
        "rulebook: hot\nevents: {t: {signal: {d: int, x: int}}}\n"
        "settings: {dedupe_keys_max: 5000}\n"
        "rules:\n  r:\n    on: t\n    per: d\n    do: {signal: {t: {d: d, x: x}}}\n"
        "    cooldown: 10 min\n    throttle: 3 per 1 h\n    dedupe: {by: x, within: 1 d}\n"
        "    hysteresis: {fire: x > 80, rearm: x < 70}\n  s: {on: t}\n"
    )
    lines = explain(file).splitlines()
    at = lines.index("  hysteresis  fire x > 80; rearm x < 70")
    assert [line.split()[0] for line in lines[at : at + 8 : 2]] == [
        "hysteresis", "dedupe", "cooldown", "throttle",
    ]  # fmt: skip
    assert "for 1 day, at most 5,000 (dedupe_keys_max)" in lines[at + 3]
    assert lines[at + 7].strip() == "remembers at most 3 instants per key, for 1 h"
    once = tmp_path / "once.yaml"
    once.write_text(file.read_text().replace("3 per 1 h", "1 per 1 h"))
    assert "remembers at most 1 instant per key, for 1 h" in explain(once)
    rules = json.loads(explain(file, format_="json"))["rules"]
    kept = [
        (one["kind"], one["instants_max"], one["forgets_micros"]) for one in rules[0]["damping"]
    ]
    assert kept == [
        ("hysteresis", 0, None),
        ("dedupe", None, 86_400_000_000),
        ("cooldown", 1, 600_000_000),
        ("throttle", 3, 3_600_000_000),
    ]
    assert rules[1]["damping"] == []


def test_brackets_show_how_operators_of_different_levels_group(tmp_path: Path) -> None:
    file = tmp_path / "b.yaml"
    file.write_text(
        "rulebook: b\nevents: {a: {signal: {}}, b: {signal: {}}, c: {signal: {}}}\nrules:\n"
        "  r: {on: a ; b and c within 1 h without b or c}\n"
        "  s: {on: 'a ; b ; c + [5 s]'}\n"
    )
    found = explain(file)
    shown = [line.split(maxsplit=1)[1] for line in found.splitlines() if line.startswith("  on ")]
    assert shown == ["((a ; b) and c) within 1 h without (b or c)", "a ; b ; c + [5 s]"]


WHERE = """\
rulebook: r
events: {a: {signal: {v: bigint}}, b: {signal: {v: bigint}}, c: {signal: {v: bigint}}}
rules:
  scanned: {on: a ; b ; c within 1 h, where: a.v < c.v}
  searched: {on: (a or (b ; c)) within 1 h, where: b.v < c.v or a.v > 1, context: recent}
  part: {on: (a ; b within 1 h) ; c, where: a.v < b.v}
  none: {on: a ; b within 1 h}
"""


def test_a_where_says_how_it_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(WHERE)
    by = {rule["name"]: (rule["asked"], rule["asked_by"]) for rule in as_json(path)["rules"]}
    assert by == {
        "scanned": (["(a ; b ; c) within 1 h"], "scan"),
        "searched": (["(a or (b ; c)) within 1 h"], "search"),
        "part": (["(a ; b) within 1 h"], "search"),
        "none": ([], None),
    }
    said = explain(path)
    assert said.count("compiled: one scan over all keys") == 1
    assert said.count("not compiled: a search at each instant") == 2


@pytest.mark.parametrize(("detect", "said"), [
    ("driver", None), ("spark", "(detect: spark)"), ("auto", "driver_carried_max (detect: auto)"),
])  # fmt: skip
def test_who_detects_what_has_a_key_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, detect: str, said: str | None
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    file = tmp_path / "two.yaml"
    file.write_text(f"{SHOP}settings: {{detect: {detect}}}\n")
    told = [
        [line for line in explain(file, verbose=v).splitlines() if "executors detect" in line]
        for v in (False, True)
    ]
    assert [len(lines) for lines in told] == [int(detect == "spark"), int(bool(said))]
    assert all(line.endswith(said or "") for lines in told for line in lines)
    assert as_json(file)["detect"] == detect
