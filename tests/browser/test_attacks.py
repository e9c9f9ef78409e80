"""Pages of another site, in a browser in which somebody is logged in to the console (G28)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.browser.conftest import EVIL, Browser, Serve
from tests.connectors.http.console.conftest import fill
from tidegate.engine.store import SqlStore

SENDS = """<!doctype html><title>evil</title>
<form id=f method=post action="{console}/entries/shop/1/skip"><input name=token value=x></form>
<script>document.getElementById("f").submit()</script>"""
FRAMES = """<!doctype html><title>evil</title><iframe id=i src="{console}/stuck"></iframe>
<script>window.seen = null; const i = document.getElementById("i");
i.onload = () => {{ try {{ window.seen = i.contentDocument === null ? "closed" : "open" }}
catch (e) {{ window.seen = "closed" }} }}</script>"""
READS = """<!doctype html><title>evil</title><script>
window.seen = [];
const note = (what) => window.seen.push(what);
const one = (way, call) => call().then(() => note(way + " got it"), () => note(way + " refused"));
const loaded = (tag, src) => new Promise((done, failed) => {{
  const e = document.createElement(tag); e.onload = done; e.onerror = failed; e.src = src;
  document.head.append(e); }});
Promise.all([
  one("fetch", () => fetch("{console}/firings.json", {{credentials: "include"}})),
  one("opaque", () => fetch("{console}/firings.json", {{credentials: "include", mode: "no-cors"}})),
  one("post", () => fetch("{console}/entries/shop/1/skip", {{method: "POST", mode: "no-cors",
    credentials: "include", body: new URLSearchParams({{token: "x"}})}})),
  one("script", () => loaded("script", "{console}/firings.json")),
  one("image", () => loaded("img", "{console}/static/favicon.svg")),
]).then(() => note("end"));
</script>"""


class Evil(BaseHTTPRequestHandler):
    """Another site: on `localhost`, which is not 127.0.0.1 to a browser."""

    pages: dict[str, str]

    def do_GET(self) -> None:
        text = self.pages.get(self.path, "").encode()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def evil(browser: Browser, serve: Serve, store: SqlStore) -> Iterator[str]:
    """The address of the other site. Somebody is logged in to the console."""
    fill(store)
    serve()
    browser.log_in()
    browser.until(lambda: browser.path == "overview")
    console = f"{browser.address}/console"
    named = {"/sends": SENDS, "/frames": FRAMES, "/reads": READS}
    Evil.pages = {path: page.format(console=console) for path, page in named.items()}
    with ThreadingHTTPServer(("localhost", 0), Evil) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


def asked(store: SqlStore) -> int:
    return len(store.of("shop").controls.pending())


def test_g28_a_form_that_another_site_sends_asks_for_nothing(
    browser: Browser, evil: str, store: SqlStore
) -> None:
    browser.driver.get(f"{evil}/sends")
    browser.until(lambda: "another site has sent this request" in browser.one("body").text)
    assert asked(store) == 0


def test_g28_another_site_can_frame_nothing(browser: Browser, evil: str) -> None:
    browser.driver.get(f"{evil}/frames")
    browser.until(lambda: browser.run("return window.seen") == "closed")
    browser.driver.switch_to.frame(0)
    assert "Stuck" not in browser.one("body").text
    browser.driver.switch_to.default_content()


def test_g28_another_site_reads_nothing(browser: Browser, evil: str, store: SqlStore) -> None:
    browser.driver.get(f"{evil}/reads")
    browser.until(lambda: "end" in browser.run("return window.seen"))
    seen = browser.run("return window.seen")
    assert not [way for way in seen if way.endswith("got it") and way.split()[0] != "post"]
    assert asked(store) == 0


def test_g28_a_rebound_name_has_no_session(browser: Browser, evil: str) -> None:
    assert evil
    port = browser.address.rpartition(":")[2]
    browser.driver.get(f"http://{EVIL}:{port}/console/firings")
    assert "/console/login" in browser.driver.current_url
    assert "noticed" not in browser.one("body").text


def test_g28_a_rebound_name_is_refused_where_there_are_no_keys(
    browser: Browser, serve: Serve, store: SqlStore
) -> None:
    fill(store)
    serve(open_=True)
    port = browser.address.rpartition(":")[2]
    browser.driver.get(f"http://{EVIL}:{port}/console/firings")
    assert "called by another name" in browser.one("body").text
    browser.open("firings")
    assert "noticed" in browser.said()


def test_g28_no_script_of_a_page_sees_the_cookie(browser: Browser, evil: str) -> None:
    assert evil
    browser.open("overview")
    assert browser.run("return document.cookie") == ""
    (cookie,) = browser.driver.get_cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/console")


def test_g28_the_pages_own_policy_stops_what_is_slipped_in(browser: Browser, evil: str) -> None:
    """Were there a hole in the escaping, nothing would run."""
    assert evil
    browser.open("overview")
    browser.complaints()
    browser.run(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.owned=1\">"
        "<style>h1{display:none}</style>');"
        "const s = document.createElement('script'); s.textContent = 'window.owned = 2';"
        "document.body.append(s);"
    )
    browser.until(lambda: len(browser.complaints()) >= 0)
    assert browser.run("return window.owned") is None
    assert browser.run("return getComputedStyle(document.querySelector('h1')).display") != "none"
