"""What tests share: one Spark session for the whole run of a worker, Java that starts light, and
the databases that a store can be on."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from tests.reference.examples import SHORT
from tests.support import postgres
from tests.support.jars import first_jars
from tests.support.stores import compiled_once, made_quickly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling


# The same code gets the same verdict: examples are drawn from the test's own text, and few of them
# where somebody waits. `make test-long` draws others each time. A mutant dies of the first example
# that fails, however long that is.
WITHOUT_SHRINKING = (Phase.explicit, Phase.generate, Phase.target)
TIMELESS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a slow machine
settings.register_profile(SHORT, TIMELESS, derandomize=True)
settings.register_profile("same", TIMELESS, derandomize=True, phases=WITHOUT_SHRINKING)
settings.register_profile("others", TIMELESS, print_blob=True)
settings.load_profile(SHORT)

TESTS = Path(__file__).resolve().parent

# A store waits for its disk at each commit, so folders of tests are in memory where there is room.
MEMORY, ROOM = Path("/dev/shm"), 4 << 30
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# Readline, which pytest imports in a worker, says that a terminal is there: lines would be
# wrapped at 80 characters there, and nowhere else.
os.environ.pop("COLUMNS", None)

# Most code of a test runs a few times: Java's second compiler takes half of the processor's time
# and gives nothing back. What the first has compiled is kept: in a fifth of this room, the usual
# one, an eighth of the time goes into compiling again. For every Java that a test starts, the
# commands' too.
# The classes of Spark are verified by those who release it, and a heap that need not grow is
# collected less often.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
    " -XX:+UseSerialGC -XX:MetaspaceSize=400m -Xms1g -Xmn500m"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
)

# Likewise for the Java code that Spark writes for each query. VACUUM and RESTORE list files in ten
# thousand tasks otherwise, which takes a minute. Commands of their own keep all that.
SPARK_CONF = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write tests/seconds.txt anew")


# Ten thousand tests are made and none of them goes: nothing to collect while they are made, and
# nothing in them to look through later. That is a fifth of what it takes to make them.
gc.disable()


def pytest_collection(session: pytest.Session) -> None:
    """Of all assertions to be rewritten, which is most of the time before the first test in a new
    checkout, every second worker begins with the last: each finds what the others have kept."""
    number = getattr(session.config, "workerinput", {}).get("workerid", "gw0").removeprefix("gw")
    if int(number) % 2 == 0 or [Path(one).resolve() for one in session.config.args] != [TESTS]:
        return
    for file in sorted(TESTS.rglob("test_*.py"), reverse=True):
        with suppress(Exception, pytest.skip.Exception):  # told when it is collected
            importlib.import_module(".".join(file.relative_to(TESTS.parent).with_suffix("").parts))


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    # A worker keeps what pytest makes of each file of tests, whatever the environment says of
    # bytecode: to rewrite all assertions anew takes longer than all else before the first test.
    if hasattr(config, "workerinput"):
        sys.dont_write_bytecode = False
    if config.getoption("--record") and not hasattr(config, "workerinput"):
        from tests.support.schedule import Recorder

        config.pluginmanager.register(Recorder())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.support.schedule import LongestFirst

    return LongestFirst(config, log)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session, started at its first use: two cores, Delta, quiet."""
    from tidegate.connectors.delta.session import start_session

    own = {"spark.master": "local[2]", "spark.driver.extraClassPath": first_jars()}
    session = start_session("tidegate-tests", {**own, **SPARK_CONF})
    yield session
    session.stop()


@pytest.fixture(scope="session", autouse=True)
def same_examples() -> Iterator[None]:
    """Hypothesis draws numbers and texts that stand in the modules that happen to be imported: a
    test would have other examples alone than among others."""
    nothing = Constants()
    with pytest.MonkeyPatch.context() as patch:
        if settings.default is not None and settings.default.derandomize:
            patch.setattr(providers, "_get_local_constants", lambda: nothing)
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_stores() -> Iterator[None]:
    """Stores do not do again what the first one of the run has done."""
    with made_quickly(), compiled_once():
        yield


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    """A PostgreSQL server, where the machine has its programs."""
    yield from postgres.running()


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store that nobody has used, to be copied: to make one takes ten times as
    long."""
    from tidegate.engine.store import open_store

    file = tmp_path_factory.mktemp("empty") / "store.db"
    open_store(f"sqlite:///{file}", create=True).close()
    return file


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that does not exist yet, on each of both databases."""
    return _new_url(request, tmp_path)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def slow_store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The same for what takes seconds."""
    return _new_url(request, tmp_path)


def _new_url(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{folder / 'store.db'}"
    server: postgres.Server = request.getfixturevalue("server")
    return server.new_url()
