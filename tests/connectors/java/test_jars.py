"""Delta's jars from a server that cuts connections: only whole files count, and none twice."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import pyspark
import pytest

from tidegate.connectors.java import download, jars, repositories
from tidegate.rules.errors import EngineError

CONTENTS = {f"part{n}-1.jar": bytes(range(256)) * (400 * (n + 1)) for n in range(3)}
CUT_AFTER = 60_000  # bytes


class Server(ThreadingHTTPServer):
    """A Maven repository with bad manners: `cuts` answers are cut, with `ranges` it goes on where
    it is asked to; `asked` are the paths and offsets."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.cuts, self.ranges, self.refused = 0, True, frozenset[str]()
        self.contents = dict(CONTENTS)
        self.asked: list[tuple[str, int]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/maven2"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        offset = int(found[1]) if found and self.server.ranges else 0
        self.server.asked.append((name, offset))
        if name in self.server.refused:
            self.send_error(404)
            return
        content = self.server.contents[name][offset:]
        self.send_response(206 if offset else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.server.cuts:
            self.server.cuts -= 1
            content = content[:CUT_AFTER]
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The one repository of an empty home."""
    monkeypatch.setattr(
        jars,
        "JARS",
        tuple(
            jars.Jar("org.example", name[:5], "1", hashlib.sha256(content).hexdigest())
            for name, content in CONTENTS.items()
        ),
    )
    monkeypatch.setattr(download, "BACKOFF_SECONDS", (0.0,) * 4)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DEFAULT_ARTIFACT_REPOSITORY", raising=False)
    server = Server()
    monkeypatch.setenv(repositories.MIRRORS, server.url)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_connection_that_is_cut_is_taken_up_where_it_ended(server: Server) -> None:
    server.cuts = 11  # more than the attempts, but each one gains something
    found = jars.delta_jars()
    assert [Path(jar).read_bytes() for jar in found] == list(CONTENTS.values())
    assert ("part2-1.jar", 4 * CUT_AFTER) in server.asked
    before = len(server.asked)
    assert (jars.delta_jars(), len(server.asked)) == (found, before)  # nothing is asked again
    Path(found[1]).write_bytes(b"half")
    jars.delta_jars()
    assert [name for name, _ in server.asked[before:]] == ["part1-1.jar"]


def test_what_was_fetched_stays_and_the_error_says_what_to_do(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    server.ranges = False
    server.contents["part1-1.jar"] = b"a page of a hotel"
    with pytest.raises(EngineError) as caught:
        jars.delta_jars()
    assert caught.value.code == "jars-unresolved"
    assert f"{server.url}/org/example/part1/1/part1-1.jar: what came is another" in str(
        caught.value
    )
    assert "1 of 3" in caught.value.hint
    assert repositories.MIRRORS in caught.value.hint
    assert [p.name for p in (tmp_path / "cache/tidegate/jars").iterdir()] == ["part0-1.jar"]
    assert [name for name, _ in server.asked].count("part1-1.jar") == download.ATTEMPTS
    server.contents, server.cuts = dict(CONTENTS), 2
    jars.delta_jars()  # it begins anew where a server cannot go on
    assert [name for name, _ in server.asked].count("part0-1.jar") == 1
    assert "fetched 2 of 2: part2-1.jar" in caplog.text


def test_another_repository_is_asked_for_what_one_has_not(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.refused = frozenset({"part0-1.jar"})
    with pytest.raises(EngineError, match="HTTP 404"):
        jars.delta_jars()
    assert len(server.asked) == 1  # asking again would not help
    other = server.url.replace("127.0.0.1", "me:secret@localhost") + "/none"
    monkeypatch.setenv(repositories.MIRRORS, f"{other}, {server.url}")
    with pytest.raises(EngineError) as caught:
        jars.delta_jars()
    assert "secret" not in str(caught.value)
    server.refused = frozenset()
    assert len(jars.delta_jars()) == 3


def test_what_maven_or_ivy_has_is_not_fetched(server: Server, tmp_path: Path) -> None:
    first, second, third = CONTENTS
    maven = tmp_path / "home/.m2/repository/org/example/part0/1" / first
    ivy = tmp_path / "home/.ivy2.5.2/cache/org.example/part1/bundles" / second
    spark = tmp_path / "ivy/jars" / f"org.example_{third}"
    for file in (maven, ivy, spark):
        file.parent.mkdir(parents=True)
        file.write_bytes(CONTENTS[file.name.removeprefix("org.example_")])
    maven.write_bytes(b"half of it")
    jars.delta_jars({"spark.jars.ivy": str(tmp_path / "ivy")})
    assert [name for name, _ in server.asked] == [first, second]


def test_repositories_are_those_that_the_machine_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(repositories.MIRRORS, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", "https://third.example/")
    assert repositories.repositories({})[-1] == repositories.CENTRAL
    ivy = tmp_path / "ivysettings.xml"
    ivy.write_text('<ibiblio name="a" m2compatible="true" root="https://second.example/m2"/>')
    (tmp_path / "spark-defaults.conf").write_text(
        f"# ours\nspark.jars.repositories  https://first.example\nspark.jars.ivySettings={ivy}\n"
    )
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2/settings.xml").write_text(
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0"><mirrors><mirror>'
        "<mirrorOf>*</mirrorOf><url>https://fourth.example</url></mirror></mirrors></settings>"
    )
    named = ("first.example", "third.example", "second.example/m2", "fourth.example")
    assert repositories.repositories({}) == [f"https://{name}" for name in named]
    monkeypatch.setenv(repositories.MIRRORS, "https://only.example")
    assert repositories.repositories({}) == ["https://only.example"]


def test_the_names_are_those_of_the_versions_that_are_installed() -> None:
    spark = ".".join(pyspark.__version__.split(".")[:2])
    first = jars.JARS[0]
    assert (first.artifact, first.version) == (f"delta-spark_{spark}_2.13", version("delta-spark"))
    shipped = {p.name for p in Path(pyspark.__file__).parent.glob("jars/*.jar")}
    assert not shipped & {jar.name for jar in jars.JARS}
