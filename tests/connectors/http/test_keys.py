"""Who may do what: bearer tokens, signatures, rights, hosts (G28, G29)."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from tests.connectors.http.conftest import POLICY, SECRETS, Serve
from tests.connectors.http.test_post import waiting
from tidegate.connectors.http import Address, Inbox, parse_address
from tidegate.connectors.http.credentials import Guard, load_keys
from tidegate.engine.app.serve import console_of
from tidegate.engine.core.policy import Policy
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import EngineError

TILL, OFFICE = "t" * 20, "b" * 20
NOW = 1_772_442_000
RUNG = b'{"id": "r1"}'
PAGE = (Path(__file__).parents[3] / "docs" / "operating.md").read_text(encoding="utf-8")


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def signed(
    secret: str,
    body: bytes,
    at: int = NOW,
    target: str = "/signals/rung",
    method: str = "POST",
) -> dict[str, str]:
    text = f"{at}\n{method}\n{target}\n".encode() + body
    digest = hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()
    return {"x-tidegate-signature": f"t={at},v2={digest}", "content-type": "application/json"}


def post(client: TestClient, event: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
    given = {"content-type": "application/json", **headers}
    found = client.post(f"/signals/{event}", content=body, headers=given)
    return found.status_code, found.json().get("error", {}).get("code")


@pytest.fixture
def guarded(serve: Serve) -> TestClient:
    return serve(guarded=True, clock=NOW)


def test_g28_a_bearer_raises_the_signals_of_its_key_and_no_other(
    guarded: TestClient, store: SqlStore
) -> None:
    assert post(guarded, "rung", RUNG, bearer(OFFICE)) == (202, None)
    assert post(guarded, "rung", RUNG, bearer(TILL)) == (403, "not-allowed")
    assert post(guarded, "moved", b"{}", bearer(OFFICE)) == (403, "not-allowed")
    told = guarded.post("/signals/rong", headers=bearer(TILL)).json()["error"]
    assert (told["code"], "rung" in told["hint"]) == ("unknown-signal", False)
    for headers in (
        {},
        bearer(""),
        bearer("wrong" * 5),
        bearer(TILL + "x"),
        {"authorization": f"Basic {TILL}"},
        {"authorization": TILL},
    ):
        assert post(guarded, "rung", RUNG, headers) == (401, "unauthorised")
        assert post(guarded, "unknown", RUNG, headers) == (401, "unauthorised")
    assert len(waiting(store)) == 1


def test_g28_a_signature_is_good_for_a_while(guarded: TestClient, store: SqlStore) -> None:
    for at in (NOW - 300, NOW, NOW + 300):
        assert post(guarded, "rung", RUNG, signed(OFFICE, RUNG, at)) == (202, None)
    assert len(waiting(store)) == 1
    other = signed("o" * 20, RUNG)["x-tidegate-signature"].partition(",")[2]
    both = f"{signed(OFFICE, RUNG)['x-tidegate-signature']},{other}"
    assert post(guarded, "rung", RUNG, {"x-tidegate-signature": both}) == (202, None)
    right = signed(OFFICE, RUNG)["x-tidegate-signature"]
    many = f",v2={'0' * 64}" * 9  # each is compared with each key
    for wrong in (
        f"t={NOW}{many},{right.partition(',')[2]}",
        signed(OFFICE, RUNG, NOW - 301)["x-tidegate-signature"],
        signed(OFFICE, RUNG, NOW + 301)["x-tidegate-signature"],
        signed(OFFICE, b'{"id": "r2"}')["x-tidegate-signature"],
        signed("o" * 20, RUNG)["x-tidegate-signature"],
        right.replace(f"t={NOW}", f"t={NOW - 1}"),
        right.replace("v2=", "v1="),
        f"t={NOW - 1},{right}",
        right[:-2],
        f"t={NOW}",
        "",
    ):
        headers = {"x-tidegate-signature": wrong, **bearer(OFFICE)}
        assert post(guarded, "rung", RUNG, headers) == (401, "unauthorised"), wrong
    assert post(guarded, "rung", RUNG, signed(TILL, RUNG)) == (403, "not-allowed")
    assert len(waiting(store)) == 1


def test_g28_a_signature_is_of_one_method_and_target(guarded: TestClient, store: SqlStore) -> None:
    rung = "/signals/rung"
    for signed_target, method, sent_target, status in (
        (rung, "POST", rung, 202),
        ("/signals/ordered", "POST", rung, 401),
        (rung, "GET", rung, 401),
        (rung, "post", rung, 401),
        (rung, "POST", f"{rung}?a=1", 401),
        (f"{rung}?a=1", "POST", rung, 401),
        (f"{rung}?a=1", "POST", f"{rung}?a=2", 401),
        (f"{rung}?a=%2f&b", "POST", f"{rung}?a=%2f&b", 202),
        (f"{rung}?a=%2F&b", "POST", f"{rung}?a=%2f&b", 401),
        ("/signals/r%75ng", "POST", "/signals/r%75ng", 202),
        (rung, "POST", "/signals/r%75ng", 401),
        (f"{rung}\n", "POST", rung, 401),
        (f"http://127.0.0.1{rung}", "POST", rung, 401),
    ):
        headers = signed(OFFICE, RUNG, NOW, signed_target, method)
        found = guarded.post(sent_target, content=RUNG, headers=headers)
        assert found.status_code == status, (signed_target, method, sent_target)
    part = signed(OFFICE, b"x\n" + RUNG, NOW, rung)  # a body's begin is no end of a target
    assert guarded.post(f"{rung}%0Ax", content=RUNG, headers=part).status_code == 401
    assert len(waiting(store)) == 1


def test_g28_the_same_body_and_signature_are_not_taken_for_another_signal(
    live: Callable[..., Address], store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    text = "rulebook: shop\nevents: {a: {signal: {}}, b: {signal: {}}}\nrules: {r: {on: a or b}}\n"
    store.of("shop").versions.register(text, None)
    address = live(Policy(inbox_keys={"till": frozenset({"a", "b"})}))
    headers = signed(TILL, RUNG, int(time.time()), "/signals/a?x=%20y")
    statuses = []
    for target in ("/signals/b?x=%20y", "/signals/a", "/signals/a?x=%20y"):
        connection = HTTPConnection(address.host, address.port, timeout=20)
        connection.request("POST", target, RUNG, headers)
        statuses.append(connection.getresponse().status)
        connection.close()
    assert statuses == [401, 401, 202]
    found = store.of("shop").signals.unplaced(["a", "b"], 0, 9).signals
    assert [(s.event, s.id) for s in found] == [("a", "r1")]


def test_g28_the_example_of_the_page_is_taken(
    live: Callable[..., Address], store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    text = "rulebook: shop\nevents: {reported: {signal: {account_id: bigint, by: string}}}\n"
    store.of("shop").versions.register(text + "rules: {r: {on: reported}}\n", None)
    address = live(Policy(inbox_keys={"till": frozenset({"reported"})}))
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (code,) = (block for block in blocks if "X-Tidegate-Signature" in block)
    exec(code.replace("127.0.0.1:8080", str(address)), {})
    found = store.of("shop").signals.unplaced(["reported"], 0, 9).signals
    assert [s.id for s in found] == ["report-2"]


def test_g28_a_signed_signal_has_an_id_so_that_a_copy_of_it_raises_nothing(
    guarded: TestClient, store: SqlStore
) -> None:
    bare = b"[{}]"
    assert post(guarded, "rung", bare, signed(OFFICE, bare)) == (400, "signal-id")
    sold = b'{"$id": "o1", "id": 7}'
    for _ in range(3):
        headers = signed(TILL, sold, NOW, "/signals/ordered")
        assert post(guarded, "ordered", sold, headers) == (202, None)
    assert [s.id for s in waiting(store)] == ["o1"]


def test_a_secret_may_be_of_any_letters() -> None:
    secret = "ö" * 15 + "à"  # whose last byte is a blank in Latin-1
    keys = load_keys(POLICY, {**SECRETS, "TIDEGATE_SECRET_TILL": secret})
    header = (b"authorization", f"bearer  {secret} ".encode())
    found = Guard(keys, 300).admit(Request({"type": "http", "headers": [header]}))
    assert found is not None
    assert found.name == "till"


def test_every_page_but_health_asks_for_a_key(guarded: TestClient) -> None:
    for path in ("/openapi.json", "/metrics", "/events/stream?name=noticed"):
        assert guarded.get(path).status_code == 401
    for path in ("/openapi.json", "/metrics"):
        assert guarded.get(path, headers=bearer(TILL)).status_code == 200
        assert guarded.get(path, headers=signed(TILL, b"", NOW, path, "GET")).status_code == 200
    for path in ("/healthz", "/readyz"):
        assert guarded.get(path).status_code == 200
    found = guarded.get("/events/stream?name=noticed", headers=bearer(TILL))
    assert (found.status_code, found.json()["error"]["code"]) == (403, "not-allowed")


def test_g28_a_key_that_monitors_reads_figures_and_nothing_else(guarded: TestClient) -> None:
    watch = bearer("m" * 20)
    assert "tidegate_lag_seconds" in guarded.get("/metrics", headers=watch).text
    for path in ("/openapi.json", "/events/stream?name=noticed"):
        found = guarded.get(path, headers=watch)
        assert (found.status_code, found.json()["error"]["code"]) == (403, "not-allowed")
    assert post(guarded, "rung", RUNG, watch) == (403, "not-allowed")


def test_wrong_keys_are_limited_by_their_address(serve: Serve) -> None:
    settings = {"inbox_requests_per_second_max": "2"}
    client = serve(guarded=True, clock=NOW, settings=settings)
    codes = [post(client, "rung", RUNG, bearer("w" * 20))[0] for _ in range(9)]
    assert (codes[:2], codes[-1]) == ([401, 401], 429)
    assert post(client, "rung", RUNG, bearer(OFFICE)) == (202, None)


def test_without_keys_only_the_machine_itself_is_answered(client: TestClient) -> None:
    for host in ("localhost:8080", "127.0.0.1", "127.9.9.9:1", "[::1]:80", "LOCALHOST"):
        assert client.get("/openapi.json", headers={"host": host}).status_code == 200
    for host in ("evil.example.org", "127.0.0.1.nip.io:80", "10.0.0.1", "[::", "a:b:c", ""):
        found = client.get("/openapi.json", headers={"host": host})
        assert (found.status_code, found.json()["error"]["code"]) == (403, "foreign-host"), host


def test_g29_secrets_come_from_variables_and_are_never_shown() -> None:
    keys = load_keys(POLICY, SECRETS)
    assert [key.name for key in keys] == ["back-office", "till", "watch"]
    assert TILL not in repr(keys)
    short = {**SECRETS, "TIDEGATE_SECRET_TILL": "short-secret"}
    missing = {name: secret for name, secret in SECRETS.items() if name.endswith("TILL")}
    for environment, said in (
        (missing, "back-office is not set"),
        (short, "till is shorter than 16"),
        (dict.fromkeys(SECRETS, TILL), "back-office and till have one secret"),
    ):
        with pytest.raises(EngineError, match=said) as refused:
            load_keys(POLICY, environment)
        assert refused.value.code == "inbox-secret"
        assert not any(secret in str(refused.value) for secret in environment.values())


def test_g28_a_key_of_the_console_raises_and_hears_nothing() -> None:
    policy = Policy(console_keys={"till": frozenset({"operate"})})
    (key,) = load_keys(policy, SECRETS)
    assert (key.raises, key.hears) == (frozenset(), frozenset())
    assert key.console == {"view", "operate"}
    assert all(not one.console for one in load_keys(POLICY, SECRETS))


def test_g28_keys_of_which_none_is_for_the_console_have_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    with pytest.raises(EngineError, match="none that may see the console") as refused:
        Inbox(parse_address("127.0.0.1:0"), POLICY, console_of(None))
    assert refused.value.code == "console-closed"
    with pytest.raises(EngineError, match="could raise signals"):
        Inbox(parse_address("0.0.0.0:0"), Policy(), console_of(None))
    Inbox(parse_address("127.0.0.1:0"), Policy(), console_of(None)).close()


def test_g28_another_machine_is_let_in_only_with_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match="could raise signals") as refused:
        Inbox(parse_address("0.0.0.0:0"), Policy())
    assert refused.value.code == "inbox-open"
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    Inbox(parse_address("0.0.0.0:0"), POLICY).close()
    with Inbox(parse_address("127.0.0.1:0"), Policy()) as inbox:
        with pytest.raises(EngineError, match="cannot listen on") as taken:
            Inbox(inbox.address, Policy())
        assert taken.value.code == "port-taken"
        assert "0: any" in taken.value.hint


@pytest.mark.parametrize("text", ["8080", ":8080", "localhost:", "a:99999", "::1:80", "a:-1", ""])
def test_an_address_is_host_and_port(text: str) -> None:
    with pytest.raises(ValueError, match=r"HOST:PORT|brackets"):
        parse_address(text)


def test_an_address_of_ipv6_stands_in_brackets() -> None:
    assert str(parse_address("[::1]:80")) == "[::1]:80"
