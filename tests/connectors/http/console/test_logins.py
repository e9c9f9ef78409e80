"""Logins, their cookies, and what becomes of those that are refused (G28)."""

from __future__ import annotations

from functools import partial

import pytest

from tests.connectors.http.console.conftest import ADA, BOB, OWN, Consoles, Visitor, log_in
from tests.connectors.http.console.test_sessions import Clock
from tidegate.connectors.http.console import site
from tidegate.connectors.http.console.entrance import FIELDS_MAX, FORM, FORM_BYTES_MAX
from tidegate.connectors.http.console.sessions import COOKIE, SECURE_COOKIE
from tidegate.connectors.http.inbox_limits import Rates


def test_g28_a_cookie_is_for_this_site_and_not_for_scripts(consoles: Consoles) -> None:
    client = consoles(guarded=True)
    form = {"name": "ada", "secret": ADA}
    plain = client.post("/console/login", data=form, headers=OWN).headers["set-cookie"]
    assert plain.startswith(f"{COOKIE}=")
    parts = {part.strip().lower() for part in plain.split(";")[1:]}
    assert parts == {"httponly", "path=/console", "samesite=strict"}
    headers = {"origin": "http://127.0.0.1"}  # a secure cookie would not be kept
    again = client.post("/console/login", data=form, headers=headers).headers["set-cookie"]
    assert again.startswith(f"{COOKIE}=")
    headers = {"origin": "https://127.0.0.1"}  # a proxy speaks TLS
    secure = client.post("/console/login", data=form, headers=headers).headers["set-cookie"]
    assert secure.startswith(f"{SECURE_COOKIE}=")
    parts = {part.strip().lower() for part in secure.split(";")[1:]}
    assert parts == {"httponly", "path=/", "samesite=strict", "secure"}
    id_ = plain.partition("=")[2].partition(";")[0]
    assert len(id_) > 40
    assert id_ != secure.partition("=")[2].partition(";")[0]


def test_g28_a_cookie_that_somebody_has_planted_is_nobodys(consoles: Consoles) -> None:
    """Not before the login, and not after it: a session has an id that only the login gives."""
    client = consoles(guarded=True)
    for planted in ("x" * 43, "", "é", "a;b", "../../x"):
        for name in (COOKIE, SECURE_COOKIE):
            headers = [(b"cookie", f"{name}={planted}".encode())]
            assert client.get("/console/overview", headers=headers).status_code == 303
    client.cookies.set(COOKIE, "planted" * 6, domain="127.0.0.1", path="/console")
    log_in(client)
    assert "planted" not in client.cookies[COOKIE]
    fresh = consoles(guarded=True)
    fresh.cookies.set(COOKIE, "planted" * 6, path="/console")
    assert fresh.get("/console/overview").status_code == 303


def test_g28_a_session_is_over_when_it_is_over(ada: Visitor, consoles: Consoles) -> None:
    stolen = {"cookie": f"{COOKIE}={ada.client.cookies[COOKIE]}"}
    found = ada.client.post("/console/logout", data={"token": "x"}, headers=OWN)
    assert (found.status_code, ada.client.get("/console/overview").status_code) == (403, 200)
    assert ada.press("logout")[:2] == (303, "/console/login")
    assert ada.client.cookies.get(COOKIE) is None
    assert ada.client.get("/console/overview", headers=stolen).status_code == 303
    script = {**stolen, "hx-request": "true"}  # of a page that is open: it says `logged out`
    assert ada.client.get("/console/overview", headers=script).status_code == 401
    bound = consoles(guarded=True, console_sessions_max="2")
    first = log_in(bound).client.cookies[COOKIE]
    bound.cookies.clear()
    for name, secret in (("bob", BOB), ("ada", ADA)):
        log_in(bound, name, secret)
        bound.cookies.clear()
    found = bound.get("/console/overview", headers={"cookie": f"{COOKIE}={first}"})
    assert found.status_code == 303  # the oldest of three has ended


def test_g28_a_login_ends_the_one_before_it(ada: Visitor) -> None:
    before = {"cookie": f"{COOKIE}={ada.client.cookies[COOKIE]}"}
    log_in(ada.client)
    assert ada.client.get("/console/overview").status_code == 200
    ada.client.cookies.clear()
    assert ada.client.get("/console/overview", headers=before).status_code == 303


def test_g28_a_wrong_login_is_nobody(consoles: Consoles) -> None:
    client = consoles(guarded=True)
    for name, secret in (
        ("ada", BOB), ("bob", ADA), ("ada", ""), ("", ADA), ("till", "t" * 20), ("ada", ADA + " "),
        ("ada", ADA.upper()), ("ada", "é" * 20), ("ADA", ADA), ("ada", "a" * 60_000),
    ):  # fmt: skip
        found = client.post("/console/login", data={"name": name, "secret": secret}, headers=OWN)
        assert found.status_code == 403, name
        assert COOKIE not in client.cookies
        assert not secret or secret not in found.text
        assert client.get("/console/overview.json").status_code == 401


def test_a_login_leads_nowhere_else(consoles: Consoles) -> None:
    client = consoles(guarded=True)
    for elsewhere in (
        "https://evil.example", "//evil.example", "/\\evil.example", "/console//evil.example",
        "/console/../metrics", "/console@evil.example", "javascript:alert(1)", "/metrics", "",
        "/console/rules\r\nset-cookie: a=b", "/console/..", "/consolex", "http:/console",
    ):  # fmt: skip
        page = client.get("/console/login", params={"next": elsewhere}).text
        assert 'name="next" value="/console/overview"' in page, elsewhere
        form = {"name": "ada", "secret": ADA, "next": elsewhere}
        found = client.post("/console/login", data=form, headers=OWN)
        assert found.headers["location"] == "/console/overview"
        assert "a=b" not in found.headers["set-cookie"]


def test_a_login_leads_back(consoles: Consoles) -> None:
    client = consoles(guarded=True)
    wanted = "/console/firings?rule=noticed&key=account_id%3D7"
    asked_for = client.get(wanted).headers["location"]
    page = client.get(asked_for).text
    assert f'name="next" value="{wanted.replace("&", "&amp;")}"' in page


def test_g28_a_secret_in_the_wrong_field_is_not_logged(
    consoles: Consoles, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "LOGGED_PER_SECOND", 100)
    client = consoles(guarded=True)
    for name, secret in ((ADA, "ada"), ("ada", BOB), ("\x1b[2J", "")):
        form = {"name": name, "secret": secret}
        found = client.post("/console/login", data=form, headers=OWN)
        assert (found.status_code, ADA in found.text) == (403, False)
    names = ("nobody it knows", "ada", "nobody it knows")
    assert refused_logins(caplog) == [
        f"console: 1 login refused, the last as {name}" for name in names
    ]
    assert not [text for text in (ADA, BOB, "\x1b") if text in caplog.text]


def test_who_tries_many_logins_fills_no_log(
    consoles: Consoles, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(site, "Rates", partial(Rates, clock=clock))
    client = consoles(guarded=True)
    for clock.now in (0.0, *[0.5] * 20, 1.5):
        assert client.post("/console/login", data={"name": "ada"}, headers=OWN).status_code == 403
    assert refused_logins(caplog) == [
        f"console: {many} refused, the last as ada" for many in ("1 login", "21 logins")
    ]


def refused_logins(caplog: pytest.LogCaptureFixture) -> list[str]:
    said = [record.getMessage() for record in caplog.records]
    return [line for line in said if "refused, the last as" in line]


def test_a_form_that_is_too_large_is_not_read(consoles: Consoles) -> None:
    """The page names the limit that it is over, and the connection ends."""
    client = consoles(guarded=True)
    form = {"name": "ada", "secret": "s" * FORM_BYTES_MAX}
    found = client.post("/console/login", data=form, headers=OWN)
    assert (found.status_code, found.headers["connection"]) == (413, "close")
    assert "larger than 65,536 bytes (of a form of the console)" in found.text
    many = "&".join(f"n{number}=" for number in range(FIELDS_MAX + 1))
    headers = {**OWN, "content-type": FORM}
    assert client.post("/console/login", content=many, headers=headers).status_code == 400


def test_g28_logins_are_tried_as_often_as_a_program_may_call(consoles: Consoles) -> None:
    client = consoles(guarded=True, inbox_requests_per_second_max="3")
    form = {"name": "ada", "secret": "w" * 20}
    tried = [client.post("/console/login", data=form, headers=OWN).status_code for _ in range(9)]
    assert (tried[0], tried[-1]) == (403, 429)
    found = client.post("/console/login", data=form, headers=OWN)
    assert (found.status_code, found.headers["retry-after"]) == (429, "1")
    assert found.json()["error"]["code"] == "too-many-requests"  # no page: none is rendered
    assert "frame-ancestors 'none'" in found.headers["content-security-policy"]
