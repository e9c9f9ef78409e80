"""A rulebook whose rules come of each other, and stories of its firings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.replay.why.stored import run_case
from tidegate.engine.replay.why.ask import why
from tidegate.engine.replay.why.model import Story
from tidegate.engine.store import SqlStore

SHOP = """\
rulebook: shop
timezone: Europe/Berlin
tables: {orders: {path: ./orders, key: [id]}}
events:
  ordered: {on: insert, table: orders, where: kind = 'online'}
  changed: {on: update, of: [state], table: orders, where: new.state = 'lost'}
  gone: {on: delete, table: orders}
  shipped: {on: insert, table: orders, time: at, lateness: 10 min, where: kind = 'ship'}
  paid: {signal: {id: bigint, amount: "decimal(12,2)"}}
  noticed: {signal: {id: bigint}}
rules:
  settled:
    on: ordered ; paid within 1 h
    per: id
    context: chronicle
    if: sum(amount) > 10
    do:
      - signal: noticed
      - webhook:
          url: https://ops.example.org/hook/s3cret-path?token=s3cret
          secret: TIDEGATE_SECRET_S3CRET
          body: {id: id}
  noted: {on: noticed, per: id}
  twice: {on: "any(2, settled*)", per: id, context: chronicle}
  quiet: {on: paid, per: id, cooldown: 1 h, do: [{signal: noticed}]}
  dry: {on: paid, per: id, mode: dry, do: [{signal: noticed}]}
  lost: {on: changed, per: id}
  late: {on: shipped, per: id}
  removed: {on: gone, per: id}
"""
CASES = """\
rulebook: shop.yaml
schemas: {orders: "id BIGINT, kind STRING, state STRING, amount DECIMAL(12,2), at TIMESTAMP"}
tests:
- name: day
  tables: {orders: [{id: 8, state: sent}]}
  steps:
  - {at: 2026-03-02T09:00:00}
  - {after: 1 min, insert: {orders: [{id: 7, kind: online, amount: 4}, {id: 9, kind: web}]}}
  - {after: 1 min, signal: {paid: {id: 7, amount: 8}}}
  - {after: 1 min, insert: {orders: {id: 7, kind: online, amount: 1}}}
  - {after: 1 min, signal: {paid: {id: 7, amount: 2}}}
  - {after: 1 min, insert: {orders: {id: 7, kind: online, amount: 30}}}
  - {after: 1 min, signal: {paid: {id: 7, amount: 2}}}
  - {after: 1 min, update: {orders: {where: id = 8, set: {state: lost}}}}
  - {after: 1 min, insert: {orders: {id: 5, kind: ship, at: 2026-03-02T09:01:00}}}
  - {after: 1 h, delete: {orders: id = 8}}
"""


def day(folder: Path, store: SqlStore) -> dict[str, list[Mapping[str, Any]]]:
    """Run the day over a store; by rule, its firings as they are listed."""
    (folder / "shop.yaml").write_text(SHOP)
    file = folder / "shop.test.yaml"
    file.write_text(CASES)
    run_case(file, "day", store)
    return listed(store, "shop")


def listed(store: SqlStore, rulebook: str) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for firing in store.of(rulebook).firings.listed():
        found.setdefault(firing["rule"], []).append(firing)
    return found


def story(store: SqlStore, firing: Mapping[str, Any]) -> Story:
    return why(store, None, firing["firing_id"])
