"""Alerts and panels ask for figures that `/metrics` prints, by labels that these have."""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.docs.pages import ROOT
from tests.support import make
from tidegate.connectors.http.metrics import ENTRY_STATES, Metrics
from tidegate.connectors.http.rulebooks import Source
from tidegate.engine.core.keeping import DAY_MICROS, Keeping
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.store import open_store

FOLDER = ROOT / "docs" / "deploy"
ALERTS = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
BOARD = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
QUERIES = [(rule["alert"], rule["expr"]) for rule in RULES] + [
    (panel["title"], target["expr"]) for panel in BOARD["panels"] for target in panel["targets"]
]
BOOK = """\
rulebook: shop
tables: {orders: {path: /orders}}
events: {placed: {on: insert, table: orders}, rung: {signal: {}}, evening: {at: "20:00"}}
scripts: {counted: {text: "in {} rung out {} chimed (rung() {!> chimed();})*"}}
rules: {noticed: {on: placed ; rung}, nightly: {on: evening}}
"""
_SELECTED = re.compile(r"\b(tidegate_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)(=~|=)"([^"]*)"')


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, set[str]]]:
    """By the name of a figure its labels, and their values: of a rulebook that has run."""
    folder = tmp_path_factory.mktemp("store")
    with open_store(f"sqlite:///{folder / 'store.db'}", create=True) as store:
        store.of("shop").versions.register(BOOK, None)
        epoch = store.of("shop").lease.acquire("one", 60)
        store.of("shop", epoch).keepings.tell([Keeping("orders", 30 * DAY_MICROS, 7 * DAY_MICROS)])
        store.of("shop", epoch).lease.say(Activity("idle", looked_at=store.wall()))
        names = dict.fromkeys(("noticed", "nightly", "counted"), make.BEGIN)
        fired = make.firings("noticed", 2)
        dropped = pa.array(["cooldown", None])
        plan = make.plan(rulebook="shop", activations=names, ranges=(make.a_range("orders", 1, 2),))
        make.commit(
            store,
            epoch,
            replace(plan, now=store.wall()),
            digests=dict.fromkeys(names, "d"),
            fired=[replace(fired, firings=fired.firings.append_column("damped", dropped))],
            entries=[make.entry("noticed", target="orders", target_version=1)],
            seconds={"plan": 0.1},
            misfires={"evening": 1},
        )
        source = Source(store)
        metrics = Metrics(source)
        metrics.answered(202)
        metrics.wrote(1, 1)
        text = metrics.text(asyncio.run(source.status.get())).decode()
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            for label, value in (sample.labels or {"": ""}).items():
                found[sample.name][label].add(value)
    return found


def test_there_are_alerts_and_panels() -> None:
    assert len(RULES) >= 12
    assert len(BOARD["panels"]) >= 12
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("query", QUERIES, ids=[f"{title}: {text}"[:70] for title, text in QUERIES])
def test_a_query_asks_for_what_there_is(
    figures: dict[str, dict[str, set[str]]], query: tuple[str, str]
) -> None:
    _, text = query
    assert text.count("(") == text.count(")")
    asked = _SELECTED.findall(text)
    assert asked
    by = {label for listed in re.findall(r"\b(?:by|on) \(([^)]*)\)", text) for label in
          re.findall(r"\w+", listed)}  # fmt: skip
    for name, matchers in asked:
        assert name in figures, name
        assert by <= figures[name].keys(), (name, by)
        for label, sign, value in _MATCHER.findall(matchers):
            known = figures[name][label]
            assert known, (name, label)
            if not value.startswith("$"):
                assert set(value.split("|") if sign == "=~" else [value]) <= known


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_whose_and_what_to_do(
    figures: dict[str, dict[str, set[str]]], rule: dict[str, Any]
) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["annotations"].keys() == {"summary", "remedy"}
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    named = {label for text in rule["annotations"].values() for label in
             re.findall(r"\$labels\.(\w+)", text)}  # fmt: skip
    first = _SELECTED.findall(rule["expr"])[0][0]
    assert named <= figures[first].keys()
    page = (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")
    assert f"`{rule['alert']}`" in page


def test_counters_are_asked_by_their_growth() -> None:
    for title, text in QUERIES:
        for name, _ in _SELECTED.findall(text):
            grows = re.search(rf"(?:rate|increase)\({name}\b[^)]*\[", text)
            assert bool(grows) == name.endswith("_total"), (title, text)


def test_the_dashboard_can_be_imported() -> None:
    variables = {one["name"] for one in BOARD["templating"]["list"]}
    assert variables == {"datasource", "rulebook"}
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps(BOARD["panels"])))
    assert used <= variables
    places = [
        (p["gridPos"]["x"] + dx, p["gridPos"]["y"] + dy)
        for p in BOARD["panels"]
        for dx in range(p["gridPos"]["w"])
        for dy in range(p["gridPos"]["h"])
    ]
    assert len(set(places)) == len(places), "two panels lie on each other"
    assert max(x for x, _ in places) < 24
    assert len({p["id"] for p in BOARD["panels"]}) == len(BOARD["panels"])


def test_the_states_of_actions_are_those_that_are_counted() -> None:
    assert {"held", "dead"} <= set(ENTRY_STATES)


def test_what_is_left_out_of_alerts_is_in_the_folder() -> None:
    listed = {Path(name).name for name in re.findall(r"\(deploy/([^)]+)\)", (
        ROOT / "docs" / "deploying.md").read_text(encoding="utf-8"))}  # fmt: skip
    there = {file.name for file in FOLDER.iterdir()} - {"Containerfile.dockerignore"}
    assert listed == there
