"""Opening a store: made when empty, refused with the remedy when it does not fit."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from tests.support import make, postgres
from tidegate import migrations
from tidegate.engine.core.failpoints import FailpointError, arm
from tidegate.engine.store import migrate, open_store
from tidegate.engine.store.address import parse_url, store_option, without_secrets
from tidegate.engine.store.database import Database
from tidegate.engine.store.schema import SCHEMA, version
from tidegate.engine.store.tables import WHERE, metadata
from tidegate.rules.errors import EngineError


@pytest.fixture
def url(store_url: str) -> str:
    """Both databases, in the short suite, too."""
    return store_url


def set_version(url: str, version: str) -> None:
    with Database(url).write() as connection:
        connection.execute(sa.text(f"UPDATE tidegate_version SET version_num = '{version}'"))


def refusal(url: str, *, create: bool = True) -> EngineError:
    with pytest.raises(EngineError) as caught:
        open_store(url, create=create)
    return caught.value


def test_migrations_make_the_tables_that_the_code_uses(url: str) -> None:
    assert migrate(url) == (None, SCHEMA)
    assert migrate(url) == (SCHEMA, SCHEMA)
    with Database(url).write() as connection:
        options = {"compare_type": True, "version_table": "tidegate_version"}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_an_index_has_the_condition_that_the_code_names(url: str) -> None:
    """What Alembic does not compare."""
    migrate(url)
    with Database(url).read() as connection:
        for table in metadata.sorted_tables:
            found = {one["name"]: one for one in sa.inspect(connection).get_indexes(table.name)}
            for index in table.indexes:
                options = found[str(index.name)].get("dialect_options", {})
                where = options.get(f"{connection.dialect.name}_where")
                said = index.info.get(WHERE)
                assert (where is None) is (said is None), index.name
                assert said is None or words(str(where)) == words(said), index.name


def words(condition: str) -> list[str]:
    """The words of a condition; PostgreSQL writes `NOT IN` in its own way."""
    plain = condition.replace("::text", "").replace("<> ALL", "NOT IN").replace("ARRAY", "")
    return re.findall(r"\w+", plain)


@pytest.mark.parametrize("how", ["raise", "raise:1x2", "late"])
def test_a_migration_that_fails_leaves_no_half_of_itself(url: str, how: str) -> None:
    """Its transaction is rolled back, or its answer alone is lost: the next one goes on."""
    arm(f"migrate.before={how}")
    for _ in range(how.count("x2") + 1):
        with pytest.raises(FailpointError):
            migrate(url)
        with Database(url).read() as connection:
            assert version(connection) == (SCHEMA if how == "late" else None)
    migrate(url)
    with open_store(url, create=False) as store:
        assert store.last_entry() == 0


def test_the_schema_is_that_of_the_last_migration() -> None:
    script = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert script.get_heads() == [SCHEMA]


def test_g20_a_store_has_a_random_id_and_keeps_it(tmp_path: Path) -> None:
    urls = [f"sqlite:///{tmp_path / name}.db" for name in "ab"]
    ids = [open_store(url, create=True).id for url in urls]
    assert len(set(ids)) == 2
    assert len(ids[0]) == 32
    assert [open_store(url, create=True).id for url in urls] == ids


def test_a_store_that_is_not_there_is_not_made_by_looking(url: str, tmp_path: Path) -> None:
    error = refusal(url, create=False)
    assert error.code == "no-store"
    assert "`tidegate run` makes it" in error.hint
    assert list(tmp_path.iterdir()) == []


def test_an_older_store_is_refused_with_the_command(url: str) -> None:
    migrate(url)
    set_version(url, "0000")
    error = refusal(url)
    assert error.code == "store-older"
    assert f"has schema 0000, this tidegate needs {SCHEMA}" in error.message
    assert "tidegate migrate --store " in error.hint


def test_the_command_for_an_older_store_has_the_options_of_its_url(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'bank.db'}?timeout=7"
    migrate(url)
    set_version(url, "0000")
    assert refusal(url).hint.endswith(f"then: tidegate migrate --store '{url}'")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("h/d", "h/d"),
        ("h/d?sslmode=require", "'h/d?sslmode=require'"),
        ("u:geheim@h/d", "'u:***@h/d' (the whole URL: *** is left out here)"),
        ("h/d?password=geheim", "'h/d?***' (the whole URL: *** is left out here)"),
        (
            "h/d?port=7&options=-csearch_path%3Dgeheim",
            "'h/d?port=7&***' (the whole URL: *** is left out here)",
        ),
    ],
)
def test_what_a_url_hides_is_told_where_it_has_to_be_given_again(given: str, shown: str) -> None:
    said = store_option(parse_url(f"postgresql://{given}"))
    assert said.replace("postgresql+psycopg://", "") == f"--store {shown}"


def test_a_store_of_a_schema_that_nothing_leads_on_from_is_left_alone(url: str) -> None:
    migrate(url)
    set_version(url, "0001")
    with pytest.raises(EngineError, match="schema 0001, from before the first release") as caught:
        migrate(url)
    assert caught.value.code == "store-older"
    assert "name another store" in caught.value.hint


def test_a_newer_store_is_refused(url: str) -> None:
    migrate(url)
    set_version(url, "9999")
    assert refusal(url).code == "store-newer"
    with pytest.raises(EngineError, match="made by a newer tidegate"):
        migrate(url)


def test_processes_that_start_together_make_one_store(url: str) -> None:
    fork = get_context("fork")
    ids = fork.SimpleQueue()
    started = [
        fork.Process(target=lambda: ids.put(open_store(url, create=True).id)) for _ in range(3)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0, 0, 0]
    found = {ids.get() for _ in started}
    assert len(found) == 1


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("bank.db", "'bank.db' is no URL of a store"),
        ("sqlite://", "names no file; it would not last"),
        ("sqlite:///:memory:", "names no file"),
        ("mysql://u@h/d", "is neither SQLite nor PostgreSQL"),
        ("nonsense://u:geheim@h/d", "is neither SQLite nor PostgreSQL"),
        ("postgresql://u:geheim@h:port/d", "'postgresql:***' is no URL"),
        ("postgresql://u:geheim", "'postgresql:***' is no URL"),
        ("sqlite:///file:x?mode=memory&uri=true", "names no file"),
    ],
)
def test_urls_that_name_no_store_are_refused(bad: str, says: str) -> None:
    error = refusal(bad)
    assert error.code == "bad-store-url"
    assert says in error.message
    assert "sqlite:///" in error.hint
    assert "geheim" not in str(error)


@pytest.mark.parametrize(
    "where",
    [
        "u:geheim@127.0.0.1:1/d",
        "u:ge/he:im@127.0.0.1:1/d",
        "u:ge%40he%2Fim%3Ageheim@127.0.0.1:1/d",
        "u@127.0.0.1:1/d?password=geheim",
        "u@127.0.0.1:1/d?sslpassword=geheim&passfile=/geheim",
    ],
)
def test_an_unreachable_store_is_named_without_its_password(where: str) -> None:
    error = refusal(f"postgresql://{where}", create=False)
    assert "he:im" not in str(error)
    assert error.code == "store-unreachable"
    assert "127.0.0.1:1/d" in error.message
    assert "geheim" not in str(error)
    assert error.exit_code == 3


def test_a_password_that_makes_the_url_ambiguous_is_refused_and_not_shown() -> None:
    error = refusal("postgresql://u:ge@heim/x@host/d")
    assert error.code == "bad-store-url"
    assert "%40" in error.hint
    assert "heim" not in str(error)


def test_what_the_driver_says_is_shown_without_the_secrets_in_the_url() -> None:
    url = parse_url("postgresql://u:ge%40h%27ei/m@h/d?sslpassword=ver steckt")
    for said in ("ge@h'ei/m", "ge%40h%27ei%2Fm", "ver steckt", "ver+steckt", r"ge@h\'ei/m"):
        assert without_secrets(f'missing "=" after "{said}"', url) == 'missing "=" after "***"'


def test_the_file_is_nobody_elses_to_read(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        with open_store(f"sqlite:///{tmp_path}/bank.db", create=True) as store:
            store.of("bank").versions.register("text", None)
            found = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    finally:
        os.umask(umask)
    assert found == dict.fromkeys(("bank.db", "bank.db-shm", "bank.db-wal"), 0o600)


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    error = refusal(f"sqlite:///{tmp_path}/none/store.db")
    assert error.code == "no-store"
    assert f"there is no folder {tmp_path}/none" in error.message


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    file.write_text("these are my notes, no database at all\n" * 99)
    error = refusal(f"sqlite:///{file}")
    assert error.code == "no-store"
    assert "not a database" in error.message
    assert file.read_text().startswith("these are my notes")


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'other.db'}"
    with Database(url).write() as connection:
        connection.execute(sa.text("CREATE TABLE signals (colour TEXT)"))
    assert "signals already exists" in refusal(url).message
    with Database(url).read() as connection:
        assert sa.inspect(connection).get_table_names() == ["signals"]


def test_readers_and_the_engine_do_not_wait_for_each_other(url: str) -> None:
    with open_store(url, create=True) as store, open_store(url, create=False) as other:
        epoch = store.of("bank").lease.acquire("one", 60)
        make.commit(store, epoch, make.plan(), fired=[make.firings()])
        listed = other.of("bank").firings.listed()
        next(listed)
        with Database(url).write() as connection:  # an engine in the middle of its commit
            connection.execute(sa.text("DELETE FROM firings"))
            assert other.of("bank").status.shown()["bucket"] == 1
            assert len(list(other.of("bank").firings.listed())) == 2
        with Database(url).read() as connection:  # a reader that takes its time
            connection.execute(sa.text("SELECT * FROM buckets"))
            make.commit(store, epoch, make.plan(2))


def test_sqlite_syncs_every_commit_to_disk(sqlite_url: str) -> None:
    with Database(sqlite_url).write() as connection:
        asked = ("journal_mode", "synchronous", "foreign_keys")
        pragmas = [connection.execute(sa.text(f"PRAGMA {name}")).scalar_one() for name in asked]
    assert pragmas == ["wal", 2, 1]


def test_only_a_quick_transaction_waits_for_no_disk(url: str) -> None:
    """On one connection, one after the other."""
    database = Database(url)
    asked, *expected = (
        ("PRAGMA synchronous", 1, 2)
        if database.is_sqlite
        else ("SHOW synchronous_commit", "off", "on")
    )
    for _ in range(2):
        for durable, said in zip((False, True), expected, strict=True):
            with database.write(durable=durable) as connection:
                assert connection.execute(sa.text(str(asked))).scalar_one() == said
    database.close()


def test_a_store_that_somebody_locks_is_said_to_be_busy(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.engine.store.database.BUSY_SECONDS", 0)
    with open_store(sqlite_url, create=True) as store, Database(sqlite_url).write():
        with pytest.raises(EngineError, match="locked by another writer") as caught:
            store.of("bank").signals.raise_signal(make.signal())
        assert caught.value.code == "store-busy"


def test_a_server_that_was_restarted_is_reached_again(server: postgres.Server) -> None:
    url = server.new_url()
    with open_store(url, create=True) as store:
        with Database(url).write() as connection:
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> "
            connection.execute(sa.text(others + "pg_backend_pid() AND backend_type LIKE 'client%'"))
        assert store.of("bank").buckets.load().bucket == 0


def test_a_server_that_goes_away_in_mid_transaction_is_unreachable(server: postgres.Server) -> None:
    database = Database(server.new_url())
    with pytest.raises(EngineError, match="cannot be reached") as caught, database.write() as begun:
        begun.execute(sa.text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert caught.value.code == "store-unreachable"


def test_stores_can_be_made_in_several_threads_at_once(tmp_path: Path) -> None:
    def made(number: int) -> str:
        with open_store(f"sqlite:///{tmp_path}/{number}.db", create=True) as store:
            return store.id

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(made, range(12)))) == 12
