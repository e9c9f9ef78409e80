"""Signals a second that the inbox takes from 64 connections, alone and in arrays, counted in the
store: SQLite, every commit synced to disk; server and client share the machine.

    python -m benchmarks.inbox [SECONDS]
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figure import Figure, rulebook
from tidegate.engine.store import open_store
from tidegate.engine.store.address import default_store

CONNECTIONS = 64
SECONDS = 10.0
SINGLES_WANTED, BATCHED_WANTED = 2_000, 50_000  # a second
BATCH = 1_000
BOOK = """\
events: {read: {signal: {sensor: bigint, value: double, unit: string}}}
rules: {seen: {on: read}}
settings: {inbox_requests_per_second_max: 1000000}
"""
READING = {"sensor": 4711, "value": 21.5, "unit": "C"}


async def _post(port: int, body: bytes, until: float) -> int:
    """Requests that one connection has had answered."""
    head = "POST /signals/read HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    done = 0
    while time.monotonic() < until:
        writer.write(request)
        answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 202"):
            raise SystemExit(answer.decode())
        length = re.search(rb"content-length: (\d+)", answer)
        await reader.readexactly(int(length[1]) if length else 0)
        done += 1
    writer.close()
    return done


async def _posted(port: int, body: bytes, seconds: float) -> tuple[int, float]:
    """Requests answered by all connections, and how long that took."""
    begun = time.monotonic()
    until = begun + seconds
    counts = await asyncio.gather(*(_post(port, body, until) for _ in range(CONNECTIONS)))
    return sum(counts), time.monotonic() - begun


def run(folder: Path, seconds: float = SECONDS) -> Figure:
    """The worse of the two rates wanted over those reached."""
    file = rulebook(folder, "inbox", BOOK)
    words = ["-m", "tidegate", "serve", "--http", "127.0.0.1:0", "--rulebook-file", str(file)]
    server = subprocess.Popen(
        [sys.executable, *words], stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert server.stderr is not None
    said = server.stderr.readline()
    port = int(said.strip().rpartition(":")[2])
    one = json.dumps(READING).encode()
    many = json.dumps([READING] * BATCH).encode()
    try:
        singles, single_seconds = asyncio.run(_posted(port, one, seconds))
        batches, batch_seconds = asyncio.run(_posted(port, many, seconds))
    finally:
        server.terminate()
        server.wait()
    with open_store(default_store(file), create=False) as store:
        stored = store.of("inbox").status.shown()["unplaced_signals"]
    if stored != singles + batches * BATCH:
        raise SystemExit(f"{stored} stored, answered {singles} + {batches} x {BATCH}")
    alone, batched = singles / single_seconds, batches * BATCH / batch_seconds
    ratio = max(SINGLES_WANTED / alone, BATCHED_WANTED / batched)
    numbers = {"alone, signals/s": alone, f"arrays of {BATCH:,}, signals/s": batched}
    return Figure(f"inbox: wanted / reached, {CONNECTIONS} connections", ratio, 1.0, numbers)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(run(Path(temporary), float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))
