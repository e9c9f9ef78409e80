"""Firings that are made where rules are detected are those that the driver would make."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tests.evaluate.test_stage import AS_OF, PLAN, Asked, setup
from tests.support.rulebooks import rule, sql
from tidegate.engine.core.values import Detections, Firings
from tidegate.engine.evaluate.apart import FiringsApart
from tidegate.engine.evaluate.requirements import Prepared
from tidegate.engine.evaluate.samples import Sample
from tidegate.engine.evaluate.stage import evaluate
from tidegate.engine.store import shelf as shelves
from tidegate.engine.store.shelf import FileShelf

SAMPLED = Sample("SELECT 1", pa.int64(), frozenset())


def of_one() -> tuple[Prepared, Detections]:
    prepared, found = setup(rule("moved and moved", name="a", actions=(sql("amount"),)))
    return prepared, found[0]


def test_g06_firings_made_apart_are_those_of_the_driver(tmp_path: Path) -> None:
    prepared, found = of_one()
    apart = pickle.loads(pickle.dumps(FiringsApart.of(PLAN.rulebook, prepared)))
    fired = apart(found, FileShelf("", str(tmp_path), "one"))
    assert isinstance(fired, Firings)
    (own,), (made,) = (
        evaluate(prepared, [one], PLAN, Asked(), AS_OF).firings for one in (found, fired)
    )
    assert own.firings == made.firings
    assert own.rows == made.rows
    assert made.files == ()  # they are few


def test_g26_their_rows_go_to_a_file_with_the_columns_of_all_tasks(tmp_path: Path) -> None:
    """One task has occurrences of a table, another has ticks alone: the files are alike."""
    prepared, found = of_one()
    apart = FiringsApart.of(PLAN.rulebook, prepared)
    fired = apart(found, FileShelf("", str(tmp_path), "one"))
    assert isinstance(fired, Firings)
    assert fired.sources is not None
    assert fired.sources.schema == pa.schema({"version": pa.int64(), "signal": pa.string()})


def test_g26_many_rows_go_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelves, "ROWS_BYTES_MIN", 1)
    prepared, found = of_one()
    fired = FiringsApart.of(PLAN.rulebook, prepared)(found, FileShelf("", str(tmp_path), "one"))
    assert isinstance(fired, Firings)
    assert len(fired.files) == 1
    (own,) = evaluate(prepared, [found], PLAN, Asked(), AS_OF).firings
    assert fired.rows == own.rows


def test_rules_whose_firings_need_the_driver_are_left_to_it(tmp_path: Path) -> None:
    """Ticks that sample a table are asked by the driver; no file has rows of an unknown type."""
    prepared, found = of_one()
    own = prepared.rules["a"]
    void = own.wanted.append(pa.field("v", pa.null()))
    for changed in (replace(own, samples=(SAMPLED,)), replace(own, wanted=void)):
        others = replace(prepared, rules={"a": changed})
        apart = FiringsApart.of(PLAN.rulebook, others)
        assert apart(found, FileShelf("", str(tmp_path), "one")) is found
