"""The documentation site as it is built: without a warning, without a foreign host, and its search
answers."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest

from docs.site.__main__ import build
from docs.site.pages import pages
from tests.docs.pages import ROOT

QUESTIONS = ROOT / "tests" / "docs" / "questions.json"
pytestmark = pytest.mark.skipif(find_spec("zensical") is None, reason="zensical: make install")
FOREIGN = re.compile(r"^\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"(?:url\(|@import)\s*[\"']?\s*(?:[a-z]+:)?//[^\"')]*", re.IGNORECASE)
# Classes by which a page makes the theme's script fetch something from elsewhere
ASKING = ("mermaid", "glightbox", "md-source", "exec")
NOT_FIRING = ("not firing", "rule not firing", "why is my rule not firing", "rule does not fire")
LEFT_OVER = re.compile(r"\n\s*(?:[-*] |\d+\. |\|)|\]\(|\*\*|```")


class _Fetched(HTMLParser):
    """What a browser fetches by itself for a page: all but what a reader follows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        names = ["src", "srcset", "data", "poster", "xlink:href"]
        names += ["href"] if tag in ("link", "use", "image", "base") else []
        self.addresses += [given[name] for name in names if name in given]
        self.addresses += IN_STYLES.findall(given.get("style", ""))


@cache
def addresses(text: str) -> list[str]:
    return _Fetched(text).addresses


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("site")
    built = build(folder)
    said = built.stdout + built.stderr
    assert built.returncode == 0, said
    assert "No issues found" in said
    assert "warning" not in said.lower()
    yield folder / "site"
    shutil.rmtree(folder)


def test_a_dead_link_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "index.md").write_text("# A page\n\n[another](page2.md)\n")

    monkeypatch.setattr("docs.site.__main__.write", write)
    built = build(tmp_path)
    assert built.returncode != 0
    assert "page does not exist" in built.stderr


def html(site: Path) -> dict[str, str]:
    files = sorted(site.rglob("*.html"))
    return {f.relative_to(site).as_posix(): f.read_text(encoding="utf-8") for f in files}


def test_every_page_is_built_with_a_title_of_its_own(site: Path) -> None:
    found = html(site)
    assert found.keys() >= {page.replace(".md", ".html") for page in pages()}
    titles = [re.search(r"<title>([^<]+)</title>", text) for text in found.values()]
    assert all(titles)
    named = {text for title in titles if title for text in [title[1]]}
    assert len(named) >= len(pages())


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    for name, text in html(site).items():
        fetched = addresses(text)
        assert len(fetched) > 5, name
        assert [each for each in fetched if FOREIGN.match(each)] == [], name
        inline = re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL)
        assert [IN_STYLES.findall(each) for each in inline if IN_STYLES.search(each)] == [], name
        classes = " ".join(re.findall(r'<[^>]+ class="([^"]*)"', text))
        assert [word for word in ASKING if word in classes] == [], name


def test_no_style_or_picture_fetches_anything_from_elsewhere(site: Path) -> None:
    files = [*site.rglob("*.css"), *site.rglob("*.svg")]
    assert len(files) > 5
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert IN_STYLES.findall(text) == [], file.name
        assert not re.search(r"<(?:image|use|script)[^>]*href=[\"']https?:", text), file.name


def test_what_a_page_fetches_is_there(site: Path) -> None:
    for name, text in html(site).items():
        for address in addresses(text):
            path = address.partition("#")[0].partition("?")[0]
            if path and not address.startswith("data:"):
                if name == "404.html":  # served for any path, so it names its own from the root
                    assert path.startswith("/"), address
                    path = path[1:]
                assert ((site / name).parent / path).exists(), (name, address)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="a page's script is run in Chromium")
def test_the_page_for_lost_paths_finds_its_style_from_a_file(site: Path) -> None:
    lost = (site / "404.html").as_uri()
    words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", lost]
    shown = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    rooted = [address for address in addresses(shown) if address.startswith("/")]
    assert [address for address in rooted if address.endswith(".css")] == []
    assert 'href="tutorial.html"' in shown


def test_markdown_is_not_left_over(site: Path) -> None:
    """Lists, tables and links that another Markdown would read."""
    for name, text in html(site).items():
        prose = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
        for paragraph in re.findall(r"<p>(.*?)</p>", prose, re.DOTALL):
            assert not re.search(r"\n\s*(?:[-*] |\d+\. |\|)|\]\(|\*\*|```", paragraph), (
                name,
                paragraph,
            )


def hits(site: Path, asked: list[str]) -> list[list[str]]:
    """The first places that the site's search leads to, for each question."""
    script = ROOT / "tests" / "docs" / "search.js"
    found = subprocess.run(
        ["node", script, site],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    places: list[list[str]] = json.loads(found.stdout)
    assert len(places) == len(asked)
    return places


IN_NODE = pytest.mark.skipif(shutil.which("node") is None, reason="the search is asked in node")


@IN_NODE
@pytest.mark.parametrize("words", NOT_FIRING)
def test_a_rule_that_is_not_firing_leads_to_why_not(site: Path, words: str) -> None:
    """And not to the errors whose codes have the word in them."""
    ((first, *_),) = hits(site, [words])
    assert first == "why.html#why-a-rule-is-not-firing-why-not"


@IN_NODE
def test_the_search_answers_the_questions_of_a_first_week(site: Path) -> None:
    asked = json.loads(QUESTIONS.read_text(encoding="utf-8"))
    for question, places in zip(asked, hits(site, asked), strict=True):
        kept = re.sub(r"[^\w\- ]", "", question.lower()).replace(" ", "-")
        assert places[0] == f"questions.html#{kept}", question


@IN_NODE
def test_a_word_or_two_lead_to_the_answer(site: Path) -> None:
    asked = {
        "backfill": "how-do-i-backfill-replay-or-start-from-the-beginning",
        "delete rule": "how-do-i-change-rename-or-delete-a-rule",
        "duplicate rows": "what-becomes-of-duplicate-rows",
        "kafka": "does-it-read-kafka-or-other-streams",
        "late data": "what-becomes-of-late-data",
        "memory": "how-much-memory-does-it-need",
        "rename column": "what-if-a-column-is-renamed-or-the-schema-changes",
        "retry failed action": "what-if-an-action-fails-and-how-do-i-retry-it",
        "two engines": "can-two-engines-run-one-rulebook",
        "upsert": "how-do-i-upsert-or-delete-rows",
    }
    for (words, anchor), places in zip(asked.items(), hits(site, list(asked)), strict=True):
        assert places[0] == f"questions.html#{anchor}", words
