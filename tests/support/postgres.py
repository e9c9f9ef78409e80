"""A private PostgreSQL server for one test run: on a socket in a temporary folder, no network.

    python -m tests.support.postgres

says whether this machine has the programs for it.
"""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest


@dataclass(frozen=True)
class Server:
    """A server; `kill` ends it as a crash of its machine would, `begin` starts it (again)."""

    folder: Path
    command: list[Any]
    options: dict[str, Any]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def new_url(self) -> str:
        """The URL of a schema that nobody has used (a database each would cost 8 MB each)."""
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(self._address()) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        options = f"-csearch_path%3D{name}"
        return f"postgresql://tester@/postgres?host={self.folder}&options={options}"

    def begin(self) -> None:
        """Returns once it answers."""
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(self.command, stdout=log, stderr=log, **self.options)
        self.processes.append(process)
        for _ in range(200):
            try:
                psycopg.connect(self._address()).close()
                return
            except psycopg.OperationalError:
                if process.poll() is not None:
                    break
                time.sleep(0.05)
        raise RuntimeError((self.folder / "log").read_text())

    def kill(self) -> None:
        process = self.processes.pop()
        process.send_signal(signal.SIGQUIT)
        process.wait(30)

    def stop(self) -> None:
        """Nothing in it is kept."""
        self.kill()
        shutil.rmtree(self.folder)

    def _address(self) -> str:
        return f"host={self.folder} user=tester dbname=postgres"


def find(program: str) -> str | None:
    """The newest such program on this machine."""
    installed = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{program}"))
    return shutil.which(program) or (installed[-1] if installed else None)


def running() -> Iterator[Server]:
    """What a fixture gives; skips where the machine has no server programs."""
    if not (find("initdb") and find("postgres")):
        pytest.skip("no PostgreSQL server programs (initdb, postgres) on this machine")
    server = start()
    yield server
    server.stop()


def start() -> Server:
    """Start a server as another user where we are root, who may not run it."""
    initdb, postgres = find("initdb"), find("postgres")
    assert initdb
    assert postgres
    folder = Path(tempfile.mkdtemp(prefix="tidegate-pg-"))
    data = folder / "data"
    options: dict[str, Any] = {"cwd": folder}
    if os.geteuid() == 0:
        users = {entry.pw_name: entry for entry in pwd.getpwall()}
        user = users.get("postgres") or users["nobody"]
        os.chown(folder, user.pw_uid, user.pw_gid)
        options |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    made: list[str | Path] = [
        initdb,
        "-D",
        data,
        "-A",
        "trust",
        "-U",
        "tester",
        "--no-sync",
        "-E",
        "UTF8",
    ]
    subprocess.run(made, check=True, capture_output=True, **options)
    command: list[str | Path] = [
        postgres,
        "-D",
        data,
        "-k",
        folder,
        "-c",
        "listen_addresses=",
        "-c",
        "fsync=off",
    ]
    server = Server(folder, command, options)
    server.begin()
    return server


if __name__ == "__main__":
    found = {name: find(name) for name in ("initdb", "postgres", "pg_dump")}
    lacking = [name for name, path in found.items() if path is None]
    if lacking:
        print(f"PostgreSQL: no {', '.join(lacking)} here; its tests are skipped")
    else:
        print(f"PostgreSQL: tests run on {found['postgres']}, too")
