"""`tidegate why`, as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.cli.conftest import Tidegate
from tests.replay.why.books import day
from tidegate.engine.cli.screens import ID_DIGITS
from tidegate.engine.replay.why.model import AskedAgain, Condition
from tidegate.engine.store import open_store
from tidegate.engine.store import tables as t


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """A store in which a day has happened, and the first firing of each rule. An entry is said
    to have made version 12 of `orders`."""
    folder = tmp_path_factory.mktemp("shop")
    url = f"sqlite:///{folder / 'shop.db'}"
    with open_store(url, create=True) as store:
        found = day(folder, store)
        store.of("other").versions.register("rulebook: other\nevents: {a: {signal: {}}}\n", None)
        with store.database.write() as connection:
            made = {"target": "orders", "effect_version": 12, "rows_written": 3}
            first = sa.select(sa.func.min(t.outbox.c.number)).filter_by(rule="settled")
            number = connection.execute(first).scalar_one()
            one = sa.update(t.outbox).where(t.outbox.c.number == number)
            connection.execute(one.values(**made))
        return url, {rule: some[0] for rule, some in found.items()}


def test_the_digits_that_firings_prints_are_enough(
    tidegate: Tidegate, shop: tuple[str, dict[str, Any]]
) -> None:
    url, first = shop
    listed = tidegate("firings", "--store", url, "--rulebook", "shop", "--rule", "settled").stdout
    digits = first["settled"]["firing_id"][:ID_DIGITS]
    assert digits in listed
    result = tidegate("why", digits, "--store", url)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"Firing {first['settled']['firing_id']} of rule settled")


def test_firings_and_status_point_to_why_but_not_in_json(
    tidegate: Tidegate, shop: tuple[str, dict[str, Any]]
) -> None:
    at = ("--store", shop[0], "--rulebook", "shop")
    assert tidegate("firings", *at).stdout.endswith(
        "`tidegate why ID` tells why one is there, and what became of it\n"
    )
    assert "`tidegate why ID` tells why" in tidegate("status", *at).stdout
    for command in ("firings", "status"):
        assert "tidegate why" not in tidegate(command, *at, "--json").stdout


def test_json_is_one_line(tidegate: Tidegate, shop: tuple[str, dict[str, Any]]) -> None:
    url, first = shop
    for form in (("--format", "json"), ("--json",)):
        result = tidegate("why", first["settled"]["firing_id"], "--store", url, *form)
        (line,) = result.stdout.splitlines()
        told = json.loads(line)
        assert told["rule"] == "settled"
        assert told["constituents"][0]["row"]["amount"] == 4.00
        assert told["effects"]


def test_html_is_a_page(tidegate: Tidegate, shop: tuple[str, dict[str, Any]]) -> None:
    url, first = shop
    result = tidegate("why", first["settled"]["firing_id"], "--store", url, "--format", "html")
    assert result.stdout.startswith("<!doctype html>")
    assert result.stdout.endswith("</html>\n")


def test_as_test_prints_what_tidegate_test_takes(
    tidegate: Tidegate, shop: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    url, first = shop
    result = tidegate("why", first["settled"]["firing_id"], "--store", url, "--as-test")
    file = tmp_path / "why.test.yaml"
    file.write_text(result.stdout)
    ran = tidegate("test", file, "--fast")
    assert ran.exit_code == 0, ran.stdout
    assert "1 passed" in ran.stdout


def test_a_commit_names_the_firings_behind_it(
    tidegate: Tidegate, shop: tuple[str, dict[str, Any]]
) -> None:
    url, first = shop
    at = ("--store", url, "--rulebook", "shop")
    result = tidegate("why", "--commit", "orders@12", *at)
    said = result.stdout.splitlines()
    assert said[0].startswith("Entry 2 of rule settled made version 12 of orders and wrote 3 rows")
    assert f"  tidegate why {first['settled']['firing_id']}" in said
    (entry,) = json.loads(tidegate("why", "--commit", "orders@12", *at, "--json").stdout)["entries"]
    assert entry["firings"] == [first["settled"]["firing_id"]]
    nobody = tidegate("why", "--commit", "orders@99", *at).stdout
    assert nobody.startswith("No entry of this store made version 99 of orders")
    anywhere = tidegate("why", "--commit", "orders@12", "--store", url)
    assert anywhere.stdout == result.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("ffffffffffff",), 1, "there is no firing ffffffffffff (any more)"),
        (("ffffffffffff",), 1, "is the id mistyped, or of another rulebook or store"),
        (("pay",), 1, "'pay' is no firing's id"),
        ((), 2, "say either FIRING or --commit TABLE@VERSION"),
        (("abcdef", "--commit", "orders@1"), 2, "say either FIRING or --commit"),
        (("abcdef", "--as-test", "--format", "html"), 2, "--as-test excludes"),
        (("abcdef", "--policy", __file__), 2, "--spark-conf and --policy are for --spark"),
        (("abcdef", "--spark-conf", "a=b"), 2, "--spark-conf and --policy are for --spark"),
        (("--commit", "orders", "--rulebook", "shop"), 1, "'orders' is no commit"),
        (("--commit", "order@1", "--rulebook", "shop"), 1, "did you mean 'orders'"),
        (
            ("--commit", "orders@1", "--rulebook", "other"),
            1,
            "rulebook other has no table `orders`",
        ),
        (("--commit", "order@1"), 1, "this store has no table `order`"),
    ],
)
def test_what_cannot_be_told_is_refused(
    tidegate: Tidegate, shop: tuple[str, dict[str, Any]], words: tuple[str, ...], code: int,
    said: str,
) -> None:  # fmt: skip
    result = tidegate("why", *words, "--store", shop[0])
    assert result.exit_code == code
    assert said in result.stderr


def test_a_query_is_asked_again_with_the_policy_and_the_conf_that_are_given(
    tidegate: Tidegate, shop: tuple[str, dict[str, Any]], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    url, first = shop
    given: dict[str, Any] = {}

    def asked(*_: Any, **options: Any) -> AskedAgain:
        given.update(options)
        return AskedAgain("Asked again.", {})

    monkeypatch.setattr("tidegate.engine.app.asked_again.asked_again", asked)
    monkeypatch.setattr("tidegate.engine.replay.why.tell._condition", a_query)
    policy = tmp_path / "policy.yaml"
    policy.write_text("functions: [f]\n")
    options = ("--spark", "--policy", policy, "--spark-conf", "a.b=c")
    result = tidegate("why", first["settled"]["firing_id"], "--store", url, *options)
    assert result.exit_code == 0, result.stderr
    assert given == {"policy": policy, "spark_conf": {"a.b": "c"}}
    assert "Asked again." in " ".join(result.stdout.split())


def a_query(*_: Any) -> Condition:
    return Condition("SELECT firing_id FROM event", "held", query=True, coupling="deferred")


def test_a_story_is_told_without_what_it_does_not_need(shop: tuple[str, dict[str, Any]]) -> None:
    """Its time is that of a process that begins: what it imports is most of it."""
    url, first = shop
    program = (
        "import atexit, gc, sys\n"
        "atexit.register(lambda: print(gc.get_freeze_count(), file=sys.stderr))\n"
        "from tidegate.engine.cli.main import main\n"
        "main(sys.argv[1:], standalone_mode=False)\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    words = ["why", first["settled"]["firing_id"], "--store", url]
    ran = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
    )
    *_, modules, frozen = ran.stderr.splitlines()
    assert int(frozen) > 10_000, "objects that are not looked through at the end"
    found = modules.split()
    heavy = (
        "sqlalchemy.dialects.postgresql", "psycopg", "alembic", "tidegate.rules.checks",
        "tidegate.rules.eventscript.tree", "tidegate.engine.detect", "tidegate.engine.app",
    )  # fmt: skip
    assert "tidegate.engine.replay.why.tell" in found
    assert not [name for name in found if name.startswith(heavy)]


def test_a_story_needs_neither_spark_nor_the_detector(shop: tuple[str, dict[str, Any]]) -> None:
    url, first = shop
    program = (
        "import sys\nfrom tidegate.engine.cli.main import main\n"
        "main(sys.argv[1:], standalone_mode=False)\n"
        "heavy = {'pyspark', 'numba', 'llvmlite', 'pandas'} & sys.modules.keys()\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    for form in (("--format", "json"), ("--format", "html"), ("--as-test",), ()):
        words = ["why", first["settled"]["firing_id"], "--store", url, *form]
        command = [sys.executable, "-c", program, *words]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        assert ran.stderr.splitlines()[-1] == "[]"
