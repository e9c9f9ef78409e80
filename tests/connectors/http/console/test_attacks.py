"""What other sites, other machines and people without a key try on the console (G28)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.connectors.http.console.conftest import (
    ADA,
    BOB,
    BOOK,
    OWN,
    TEXT,
    Consoles,
    Visitor,
    fill,
    log_in,
)
from tidegate.engine.app import console_values
from tidegate.engine.replay.backtest.report.card import Card, element
from tidegate.engine.replay.why.ask import why
from tidegate.engine.replay.why.model import Link, Story
from tidegate.engine.store import SqlStore

SKIP = "/console/entries/shop/1/skip"
PAGES = ("overview", "rules", "rules/shop/noticed", "firings", "stuck", "sources", "backtests")
PAGES += ("audit", "entries/shop/1/skip", "live", "reports/a.html")


def asked(store: SqlStore) -> list[str]:
    return [c.kind for c in store.of("shop").controls.pending()]


FOREIGN: tuple[Mapping[str, str], ...] = (
    {"sec-fetch-site": "cross-site", "origin": "https://evil.example"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1"},
    {"sec-fetch-site": "same-site"},  # another port or subdomain
    {"sec-fetch-site": "none"},
    {"origin": "https://evil.example"},  # a browser without Sec-Fetch-Site
    {"origin": "http://127.0.0.1:9999"},
    {"origin": "http://127.0.0.1.evil.example"},
    {"origin": "null"},
    {"origin": ""},
    {},
    {"referer": "http://127.0.0.1/console/stuck"},
)


def test_g28_a_form_of_another_site_asks_for_nothing(ada: Visitor, store: SqlStore) -> None:
    """It brings the cookie and even the token; nor does it log anybody in or out."""
    fill(store)
    form = {"token": ada.token}
    for headers in FOREIGN:
        for path, fields in (
            (SKIP, form),
            ("/console/logout", form),
            ("/console/login", {"name": "bob", "secret": BOB}),
        ):
            found = ada.client.post(path, data=fields, headers=headers)
            assert found.status_code == 403, (path, headers)
            assert "foreign-site" in found.text
    assert asked(store) == []
    assert ada.client.get("/console/overview").status_code == 200  # still as ada
    assert ada.press("entries/shop/1/skip")[0] == 303
    assert asked(store) == ["skip"]


def test_a_browser_without_fetch_metadata_may_still_use_its_own_pages(
    ada: Visitor, store: SqlStore
) -> None:
    fill(store)
    for number, origin in enumerate(
        ("http://127.0.0.1", "HTTP://127.0.0.1", "https://127.0.0.1"), 1
    ):
        found = ada.client.post(SKIP, data={"token": ada.token}, headers={"origin": origin})
        assert found.status_code == 303
        assert asked(store) == ["skip"] * number
    headers = {"origin": "http://tidegate.example", "host": "TideGate.example"}
    found = ada.client.post("/console/logout", data={"token": ada.token}, headers=headers)
    assert found.status_code == 303


def test_g28_a_form_without_its_sessions_token_asks_for_nothing(
    ada: Visitor, consoles: Consoles, store: SqlStore
) -> None:
    fill(store)
    other = log_in(consoles(guarded=True))
    for token in ("", "x", other.token, ada.token[:-1], ada.token.swapcase(), "é" * 43):
        found = ada.client.post(SKIP, data={"token": token}, headers=OWN)
        assert (found.status_code, "stale-form" in found.text) == (403, True), token
    assert ada.client.post(SKIP, headers=OWN, data={}).status_code in (403, 415)
    twice = f"token=x&token={ada.token}"
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert ada.client.post(SKIP, content=twice, headers={**OWN, **kind}).status_code == 400
    for kind_of in ("text/plain", "multipart/form-data", "application/json", ""):
        headers = {**OWN, "content-type": kind_of}
        found = ada.client.post(SKIP, content=f"token={ada.token}", headers=headers)
        assert found.status_code == 415
    assert asked(store) == []


def test_g28_a_link_asks_for_nothing(ada: Visitor, store: SqlStore) -> None:
    """Whatever a page elsewhere links to, or loads as a picture: reading changes nothing."""
    fill(store)
    for query in ("", f"?token={ada.token}", "?_method=POST"):
        assert ada.client.get(SKIP + query).status_code == 200
    for method in ("PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"):
        assert ada.client.request(method, SKIP, headers=OWN).status_code == 405
    assert asked(store) == []


@pytest.mark.parametrize("guarded", [False, True])
def test_g28_a_rebound_name_sees_nothing(
    consoles: Consoles, store: SqlStore, guarded: bool
) -> None:
    """A page's own name that now leads to this machine: its requests are of one origin, but have no
    cookie, and without keys name the wrong host."""
    fill(store)
    client = consoles(guarded=guarded)
    for host in ("evil.example", "evil.example:8080", "10.0.0.1", "", "[::", "a:b"):
        headers = {"host": host, **OWN}
        for path in PAGES:
            found = client.get(f"/console/{path}", headers=headers)
            assert found.status_code == (303 if guarded else 403), path
            assert "noticed" not in found.text
            found = client.get(f"/console/{path}.json", headers=headers)
            assert found.status_code == (401 if guarded else 403), path
        rebound = {"host": host, "origin": f"http://{host}"}
        found = client.post(SKIP, data={"token": ""}, headers=rebound)
        assert found.status_code in (401, 403)
    assert asked(store) == []


def test_g28_a_console_of_one_rulebook_shows_no_other(consoles: Consoles, store: SqlStore) -> None:
    """`serve --rulebook bank`: of `shop`, in the same store, nothing is seen, by no path."""
    store.of("bank").versions.register(BOOK.replace("rulebook: shop", "rulebook: bank"), None)
    firing, _ = fill(store)
    client = consoles(rulebook="bank")
    shown = [
        page for page in PAGES if "shop" not in page and page not in ("live", "reports/a.html")
    ]
    for path in shown:
        found = client.get(f"/console/{path}.json")
        assert (found.status_code, "shop" in found.text) == (200, False), path
        assert client.get(f"/console/{path}.json?rulebook=shop").status_code in (400, 404), path
    for path in (
        f"firings/{firing}", f"firings/{firing[:6]}", f"firings/{firing}?rulebook=shop",
        "rules/shop/noticed", "rules/shop/noticed/why-not", "entries/shop/1/skip",
    ):  # fmt: skip
        found = client.get(f"/console/{path}")
        assert (found.status_code, TEXT in found.text) == (404, False), path
    assert consoles().get(f"/console/firings/{firing}").status_code == 200


def test_g28_what_came_of_a_firing_in_another_rulebook_is_left_out(
    consoles: Consoles, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.of("bank").versions.register(BOOK.replace("rulebook: shop", "rulebook: bank"), None)
    firing, other = fill(store)
    own, foreign = Link(other, "quiet", "its signal"), Link("b" * 32, "alarm", "a commit", "bank")

    def linked(*given: Any) -> Story:
        return replace(why(*given), causes=(foreign,), effects=(own, foreign))

    monkeypatch.setattr(console_values, "why", linked)
    for rulebook, seen, notes in (("shop", [other], 1), (None, [other, "b" * 32], 0)):
        client = consoles(rulebook=rulebook)
        found = client.get(f"/console/firings/{firing}.json").json()
        assert (found["effects"], len(found["notes"])) == (seen, notes)
        page = client.get(f"/console/firings/{firing}").text
        assert [text in page for text in ("alarm", "bbbbbbbb")] == [rulebook is None] * 2


@pytest.mark.parametrize("guarded", [False, True])
def test_g28_a_request_names_one_host(consoles: Consoles, guarded: bool) -> None:
    """A proxy in front may go by the second of two."""
    client = consoles(guarded=guarded)
    for other in ("evil.example", "127.0.0.1"):
        for path in ("overview", "login", "static/console.css", "overview.json"):
            headers = [(b"host", b"127.0.0.1"), (b"host", other.encode())]
            assert client.get(f"/console/{path}", headers=headers).status_code == 400, path
        for path in ("login", "logout", "entries/shop/1/skip"):
            more = [*headers, *((name.encode(), text.encode()) for name, text in OWN.items())]
            found = client.post(f"/console/{path}", data={"token": ""}, headers=more)
            assert found.status_code == 400, path


@pytest.mark.parametrize("into", ["iframe", "frame", "embed", "object", "image", "script", "empty"])
def test_g28_no_page_of_another_site_holds_one_of_these(
    anybody: TestClient, store: SqlStore, into: str
) -> None:
    """Neither as a frame nor as a script whose errors, size or time would tell something."""
    fill(store)
    mode = "navigate" if into in ("iframe", "frame", "embed", "object") else "no-cors"
    site = "same-site" if into in ("frame", "image") else "cross-site"
    headers = {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": into}
    for path in (*PAGES, "overview.json", "firings.json", "static/console.js", "login"):
        found = anybody.get(f"/console/{path}", headers=headers)
        assert found.status_code == 403, path
        assert "noticed" not in found.text
    linked = {**headers, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert anybody.get("/console/rules", headers=linked).status_code == 200


def test_each_answer_tells_the_browser_what_it_may_do(
    anybody: TestClient, ada: Visitor, consoles: Consoles
) -> None:
    for client in (anybody, ada.client, consoles(guarded=True)):
        for path in (*PAGES[:-2], "overview.json", "nowhere", "static/console.css", "static/x"):
            headers = client.get(f"/console/{path}").headers
            policy = dict(
                part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
            )
            assert policy.pop("default-src") == policy.pop("base-uri") == "'none'"
            assert policy.pop("frame-ancestors") == "'none'"
            assert policy.keys() == {
                "script-src",
                "style-src",
                "img-src",
                "connect-src",
                "form-action",
            }
            assert {*policy.values()} == {"'self'"}
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert headers["referrer-policy"] == "same-origin"
            assert headers["cross-origin-resource-policy"] == "same-origin"
            assert "access-control-allow-origin" not in headers
            stored = headers["cache-control"]
            assert stored == ("private, max-age=300" if path.endswith("css") else "no-store")


def test_g28_who_may_view_may_not_operate(consoles: Consoles, store: SqlStore) -> None:
    fill(store)
    bob = log_in(consoles(guarded=True), "bob", BOB)
    assert "view only" in bob.client.get("/console/stuck").text
    assert 'href="/console/entries' not in bob.client.get("/console/stuck").text
    status, said = bob.press("entries/shop/1/skip")
    assert (status, "may not operate" in said) == (403, True)
    assert asked(store) == []


def test_g28_without_keys_nobody_operates(anybody: TestClient, store: SqlStore) -> None:
    fill(store)
    assert 'href="/console/entries' not in anybody.get("/console/stuck").text
    found = anybody.post(SKIP, data={"token": ""}, headers=OWN)
    assert (found.status_code, "no key is configured" in found.text) == (403, True)
    found = anybody.post("/console/login", data={"name": "", "secret": ""}, headers=OWN)
    assert found.status_code == 403
    assert asked(store) == []


def test_g28_no_path_leads_to_another_file(consoles: Consoles, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    (folder / "folder.html").mkdir(parents=True)
    secret = tmp_path / "secret.html"
    month = ("2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z")
    card = Card("secret", "x", *month, "UTC", 0, 0, 0, 0, 0, None, None, month[1])
    secret.write_text(element(card))  # a report, of another folder
    (folder / "linked.html").symlink_to(secret)
    (folder / ".hidden.html").write_text("secret")
    (folder / "other.html").write_text("secret of no report")
    client = consoles(reports=folder)
    for path in (
        "static/../site.py", "static/%2e%2e/site.py", "static/..%2fsite.py", "static/..%5csite.py",
        "static/%2fetc%2fpasswd", "static/console.css%00.js", "reports/..%2fsecret.html",
        "reports/../secret.html", "reports/linked.html", "reports/folder.html", "reports/none.html",
        "reports/%2e%2e%2fsecret.html", "reports/other.html", "reports/.hidden.html",
    ):  # fmt: skip
        found = client.get(f"/console/{path}")
        assert (found.status_code, "secret" in found.text, "import" in found.text) == (
            404,
            False,
            False,
        ), path


def test_a_key_of_a_program_reads_json_and_presses_nothing(
    consoles: Consoles, store: SqlStore
) -> None:
    fill(store)
    client = consoles(guarded=True)
    bearer = {"authorization": f"Bearer {ADA}"}
    assert client.get("/console/rules.json", headers=bearer).json()["found"] == 2
    assert 'href="/console/entries' not in client.get("/console/stuck", headers=bearer).text
    till = {"authorization": f"Bearer {'t' * 20}"}
    assert client.get("/console/rules.json", headers=till).status_code == 403
    wrong = {"authorization": "Bearer wrong"}
    assert client.get("/console/rules.json", headers=wrong).status_code == 401
    assert client.post(SKIP, data={"token": ""}, headers={**bearer, **OWN}).status_code == 401
    assert asked(store) == []
