"""What the pages show, and that nothing of it is more than text."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path

from starlette.testclient import TestClient

from tests.connectors.http.console.conftest import BOOK, TEXT, Consoles, Visitor, console, fill
from tests.support.hostile_texts import HOSTILE
from tests.support.parsed_page import Page
from tidegate.connectors.http.console.pages import PAGES
from tidegate.engine.app.console_values import REPORT_BYTES_MAX
from tidegate.engine.control.rulebooks import Rules
from tidegate.engine.core.text.printable import in_line
from tidegate.engine.replay.backtest.report.card import Card, element
from tidegate.engine.store import SqlStore, open_store

LINKED = re.compile(r"[(\"' ]https?:")
VALUE_SHOWN = 200


def addresses(firing: str) -> list[str]:
    """Of each page."""
    place = {"rulebook": "shop", "rule": "noticed", "firing": firing}
    return [f"/console/{page.path.format(**place)}" for page in PAGES]


def test_each_page_is_one_value_that_is_its_json_too(anybody: TestClient, store: SqlStore) -> None:
    firing, _ = fill(store)
    for address in addresses(firing):
        page = anybody.get(address)
        assert (page.status_code, page.headers["content-type"][:9]) == (200, "text/html"), address
        shown = Page(page.text)
        assert len(shown.texts("h1")) == 1
        assert shown.text("title").endswith("· tidegate")
        (beside,) = [a for a in shown.attributes("a") if str(a["href"]).endswith(".json")]
        found = anybody.get(str(beside["href"]))
        assert found.headers["content-type"] == "application/json"
        assert isinstance(found.json(), dict), address


def test_a_table_that_is_not_read_is_not_unknown_seconds_behind(
    anybody: TestClient, store: SqlStore
) -> None:
    fill(store)
    assert "unknown" not in Page(anybody.get("/console/sources").text).texts("td")[:4]


def test_no_page_has_a_style_or_script_in_it(ada: Visitor, store: SqlStore) -> None:
    """Drawings included: the browser would refuse them (Content-Security-Policy)."""
    firing, _ = fill(store)
    asking = ["/console/entries/shop/1/skip", "/console/rules/shop/noticed/disable", "/console/no"]
    for address in [*addresses(firing), *asking, "/console/login"]:
        page = Page(ada.client.get(address).text)
        tags = {tag for tag, _ in page.tags}
        assert not tags & {"style", "iframe", "object", "embed", "base", "foreignobject"}, address
        assert {a.get("src", "").split("/")[1] for a in page.attributes("script")} <= {"console"}
        assert not any(page.texts("script"))
        for _, attributes in page.tags:
            names = {
                name for name in attributes if name == "style" or name.startswith(("on", "hx-on"))
            }
            assert names == set(), attributes
            for name in ("href", "src", "action"):
                assert str(attributes.get(name, "/")).startswith(("/", "#")), attributes


def test_the_files_of_the_console_load_nothing_from_elsewhere(anybody: TestClient) -> None:
    names = [
        file.name
        for file in resources.files("tidegate.connectors.http.console").joinpath("static").iterdir()
    ]
    assert {"console.css", "console.js", "favicon.svg", "htmx.min.js"} == {*names}
    for name in names:
        found = anybody.get(f"/console/static/{name}")
        assert found.status_code == 200
        if name != "htmx.min.js":
            assert not LINKED.search(found.text.replace("http://www.w3.org/2000/svg", "")), name
            assert "eval(" not in found.text
    assert "@import" not in anybody.get("/console/static/console.css").text


def test_htmx_may_neither_add_a_style_nor_run_a_text(anybody: TestClient) -> None:
    (config,) = [
        a
        for a in Page(anybody.get("/console/overview").text).attributes("meta")
        if a.get("name") == "htmx-config"
    ]
    said = json.loads(str(config["content"]))
    off = ("includeIndicatorStyles", "allowEval", "allowScriptTags")
    assert not any(said[name] for name in off)
    assert said["selfRequestsOnly"] is True


def test_thirty_hostile_values_are_text_wherever_they_are_shown(
    anybody: TestClient, store: SqlStore
) -> None:
    """Of rows, errors and rejected rows, on the pages of lists and on that of each firing."""
    firings = fill(store, HOSTILE)
    lists = "".join("".join(harmless(anybody, a).every_text) for a in addresses(firings[0]))
    for firing, text in zip(firings, HOSTILE, strict=True):
        page = harmless(anybody, f"/console/firings/{firing}")
        assert in_line(text)[:VALUE_SHOWN] in "".join(page.every_text)
    shown = [text for text in HOSTILE if in_line(text)[:VALUE_SHOWN] in lists]
    assert len(shown) > 10


def harmless(client: TestClient, address: str, **query: str) -> Page:
    """A page that has no tag, attribute or character but those that its template has."""
    found = client.get(address, params=query)
    assert found.status_code in (200, 400, 404), address
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\ufeff]", found.text)
    page = Page(found.text)
    assert sum(tag == "h1" for tag, _ in page.tags) == 1
    assert {tag for tag, _ in page.tags}.isdisjoint({"iframe", "style", "b", "h6"})
    sources = [str(a.get("src", "")) for tag in ("img", "script") for a in page.attributes(tag)]
    assert all(source.startswith("/console/static/") for source in sources)
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert str(attributes.get("href", "/")).startswith(("/", "#"))
    return page


def test_a_hostile_filter_is_text(anybody: TestClient, store: SqlStore) -> None:
    fill(store)
    for text in HOSTILE:
        harmless(anybody, "/console/rules", find=text, sort=text, state=text, page=text)
        harmless(anybody, "/console/audit", subject=text, by=text, kind=text)
        for name in ("rule", "key", "since", "before", "state"):
            harmless(anybody, "/console/firings", **{name: text})
        harmless(anybody, f"/console/firings/{text.encode().hex()[:32]}", rulebook=text)


def test_a_label_says_what_its_number_counts(anybody: TestClient, store: SqlStore) -> None:
    """Hours of the clock are not the last 60 minutes, within which rows were rejected."""
    fill(store)
    page = Page(anybody.get("/console/overview").text)
    figures = dict(zip(page.texts("dt"), page.texts("dd"), strict=True))
    assert figures["rejected in the last 60 minutes"] == "2"
    assert "in the hour before" in figures["fired"]
    assert any(text.startswith("This hour, since ") for text in page.texts("h3"))
    assert "; the last bucket was detected by the driver." in page.text("main")
    store.of("shop", store.of("shop").lease.acquire("one", 60)).lease.release()
    heading = Page(anybody.get("/console/overview").text).text("h2")
    assert heading.endswith("stopped (not running); tidegate run goes on")  # without backticks


def test_a_filter_that_means_nothing_is_refused(anybody: TestClient, store: SqlStore) -> None:
    """An empty list would say that there are none, and a list of all that all are so."""
    fill(store)
    for query, said in (
        ("firings?state=zzz", "is one of: pending, held, dead, done, skipped, redriven, failed, "),
        ("rules?state=Parked", "it is one of: active, dry, parked, disabled, not active"),
        ("audit?kind=undo", "it is one of: skip, redrive, enable, disable, reload, reset"),
        ("firings?rul=noticed", "this page has no filter `rul`"),
        ("stuck?rule=noticed", "it has rulebook"),
        ("backtests?page=2", "it has none"),
        ("rules/shop/noticed/why-not?id=7", "it has key.COLUMN, at"),
        ("firings?rule=noticed&rule=quiet", "`rule` is given twice"),
        ("rules?find=" + "n" * 301, "`find` is given is longer than 300 characters"),
        ("audit?by=%00", "`by` is given holds a NUL"),
        ("rules?" + "n" * 60 + "=1", "no filter `" + "n" * 50 + ".. (60 characters)`"),
    ):
        page = anybody.get(f"/console/{query}")
        assert (page.status_code, said in Page(page.text).text("main")) == (400, True), query
        found = anybody.get("/console/" + query.replace("?", ".json?"))
        error = found.json()["error"]
        assert (found.status_code, error["code"]) == (400, "bad-filter"), query
        assert said in f"{error['message']}; {error['hint']}", query


def test_what_is_not_there_is_said(anybody: TestClient, store: SqlStore) -> None:
    fill(store)
    for path, said in (
        ("rules/shop/notised", "no rule `notised`"),
        ("rules/shup/noticed", "no rulebook `shup`"),
        ("firings/abcdef", "no firing abcdef"),
        ("firings/x", "no firing"),
        ("nowhere", "no such page"),
    ):
        page = anybody.get(f"/console/{path}")
        assert page.status_code in (400, 404)
        assert said in Page(page.text).text("main")
        found = anybody.get(f"/console/{path}.json")
        assert found.status_code in (400, 404)
        assert "code" in found.json()["error"]


def test_a_firing_is_told_as_why_tells_it(anybody: TestClient, store: SqlStore) -> None:
    firing, _ = fill(store)
    page = Page(anybody.get(f"/console/firings/{firing}").text)
    said = page.text("main")
    assert f"Firing {firing} of rule noticed for account_id 7 ended at 09:01:00" in said
    assert TEXT in said
    assert page.texts("svg")
    found = anybody.get(f"/console/firings/{firing}.json").json()
    assert found["rule"] == "noticed"
    assert found["picture"].startswith("<svg")


def test_a_rule_is_told_as_explain_tells_it(anybody: TestClient, store: SqlStore) -> None:
    fill(store)
    page = Page(anybody.get("/console/rules/shop/noticed").text)
    assert "Fires when rung comes after atm_empty." in page.text("main")
    assert any("atm_empty ; rung" in drawn for drawn in page.texts("svg"))


def test_times_are_the_rulebooks_and_say_their_zone(anybody: TestClient, store: SqlStore) -> None:
    fill(store)
    times = Page(anybody.get("/console/firings").text).attributes("time")
    assert times
    assert {
        "datetime": "2026-03-02T09:01:00Z",
        "data-zone": "UTC",
        "data-local": "2026-03-02 09:01:00",
    } in times


def test_the_pages_of_several_rulebooks_on_each_store(slow_store_url: str) -> None:
    """Rules of one name are told apart by their rulebook."""
    with open_store(slow_store_url, create=True) as store:
        store.of("shop").versions.register(BOOK, None)
        store.of("bank").versions.register(BOOK.replace("rulebook: shop", "rulebook: bank"), None)
        firing, _ = fill(store)
        with console(store) as client:
            for address in addresses(firing):
                assert client.get(address).status_code == 200, address
            rows = client.get("/console/rules.json?find=noticed").json()["rows"]
            assert [(row["rulebook"], row["fired"]) for row in rows] == [("bank", 0), ("shop", 2)]
            one = client.get("/console/rules.json?rulebook=bank").json()["rows"]
            assert {row["rulebook"] for row in one} == {"bank"}
            page = Page(client.get("/console/rules/bank/noticed").text).text("main")
            assert "of rulebook bank" in page
            assert len(client.get("/console/overview.json").json()["rulebooks"]) == 2
            asked = client.get("/console/firings.json?rulebook=bank").json()
            assert asked["rows"] == []
            Rules(store, "bank").put("late", "{on: rung}")
            store.of("bank").controls.ask("disable", "late")
            for subject, said in (("late", ["disable", "put late"]), ("Late", []), ("put", [])):
                audit = client.get(f"/console/audit.json?subject={subject}").json()["rows"]
                assert [row["said"] for row in audit] == said


def test_reports_of_backtests_are_listed_and_run_apart(consoles: Consoles, tmp_path: Path) -> None:
    """In a sandbox, without the cookie and without a network."""
    begin, end = "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"
    card = Card("bank", "bank.yaml", begin, end, "UTC", 120, 11, 2, 0, 0, None, None, end)
    script = "<script>document.title = 'ran'</script>"
    (tmp_path / "bank-1.html").write_text(f"<!doctype html>{element(card)}{script}")
    (tmp_path / "other.html").write_text("no report")
    for zone in ("Mars/Olympus", "America", "../x", ""):  # no list could tell its times
        other = element(replace(card, zone=zone))
        (tmp_path / f"zone-{len(zone)}.html").write_text(other)
    os.mkfifo(tmp_path / "pipe.html")
    (tmp_path / "linked.html").symlink_to(tmp_path / "bank-1.html")
    client = consoles(reports=tmp_path)
    found = client.get("/console/backtests.json").json()
    assert [(row["report"], row["fired"]) for row in found["rows"]] == [("bank-1.html", 120)]
    page = Page(client.get("/console/backtests").text)
    assert "/console/reports/bank-1.html" in [a["href"] for a in page.attributes("a")]
    shown = client.get("/console/reports/bank-1.html")
    assert shown.text.endswith(script)
    policy = shown.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    assert "allow-same-origin" not in policy
    assert "frame-ancestors 'none'" in policy
    assert shown.headers["x-content-type-options"] == "nosniff"
    os.truncate(tmp_path / "bank-1.html", REPORT_BYTES_MAX + 1)
    shown = client.get("/console/reports/bank-1.html")
    assert (shown.status_code, "open the file itself" in shown.text) == (404, True)


def test_a_report_that_somebody_else_wrote_is_text(consoles: Consoles, tmp_path: Path) -> None:
    for number, text in enumerate(HOSTILE):
        card = Card(*[text] * 4, "UTC", 120, 11, 2, 0, 0, text, None, text)
        (tmp_path / f"hostile-{number}.html").write_text(element(card))
    client = consoles(reports=tmp_path)
    assert client.get("/console/backtests.json").json()["found"] == len(HOSTILE)
    page = harmless(client, "/console/backtests")
    assert in_line(HOSTILE[0]) in "".join(page.every_text)


def test_where_tables_must_be_read_the_command_that_does_is_named(
    anybody: TestClient, store: SqlStore
) -> None:
    fill(store)
    at = {"at": "2026-03-02T09:00:30"}  # before the first firing
    page = Page(anybody.get("/console/rules/shop/noticed/why-not", params=at).text)
    command = "tidegate why-not noticed --at 2026-03-02T09:00:30 --rulebook shop"
    assert page.text("code") == command
    assert f"the console reads no tables; {command} reads them" in page.text("ol")
