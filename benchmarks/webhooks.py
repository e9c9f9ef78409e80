"""Webhooks a second: the real runner and SQLite store, 32 requests in flight, each of which is
signed; a server on this machine that takes 10 ms for an answer.

    python -m benchmarks.webhooks [FIRINGS]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.figure import Figure
from tidegate import rules
from tidegate.connectors.http.webhooks import WebhookPoster
from tidegate.engine.act.kinds.webhook import Webhooks
from tidegate.engine.act.run import Runner
from tidegate.engine.act.threads import Crew
from tidegate.engine.core.columns.ids import as_binary, as_hex
from tidegate.engine.core.entries import Entry, Turn
from tidegate.engine.core.state import StoredBucket
from tidegate.engine.core.statement import WebhookStatement
from tidegate.engine.core.values import Carried, Firings, Plan
from tidegate.engine.store import open_store

FIRINGS, BUCKETS = 5_000, 10
WANTED = 500  # a second
BOOK = "rulebook: bench\nevents: {a: {signal: {k: bigint}}}\nrules: {r: {on: a, per: k}}\n"
SECRETS = {"TIDEGATE_SECRET_BENCH": "0123456789abcdef"}
UTC = pa.timestamp("us", "UTC")
SERVER = """\
import asyncio, re, uvloop
class Answering(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.waiting = transport, b""
    def data_received(self, data):
        self.waiting += data
        head, _, body = self.waiting.partition(b"\\r\\n\\r\\n")
        length = re.search(rb"(?i)content-length: (\\d+)", head)
        if length and len(body) >= int(length[1]):
            self.waiting = b""
            asyncio.get_running_loop().call_later(0.01, self.transport.write, ANSWER)
ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok"
async def serve():
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
uvloop.run(serve())
"""


class _NoJob:
    """Fields that are columns need no Spark."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(name)


class _Nothing:
    """Nothing is asked of the rules; none watches another's action."""

    def watched(self, rule: str) -> frozenset[str]:  # noqa: ARG002
        return frozenset()

    def __getattr__(self, name: str) -> object:
        raise AssertionError(name)


def _firings(bucket: int, count: int) -> Firings:
    numbers = np.arange(count, dtype=np.uint64)
    ids = np.stack([numbers, numbers + np.uint64(bucket << 32)], 1)
    times = pa.array(np.full(count, 1_772_442_000_000_000 + bucket), pa.int64()).cast(UTC)
    table = {
        "firing_id": as_binary(ids),
        "k": pa.array(numbers.astype(np.int64)),
        "started_at": times,
        "detected_at": times,
        "depth": pa.array(np.ones(count, np.int32)),
        "condition": pa.array(["none"] * count),
        "constituents": pa.array(np.ones(count, np.int32)),
    }
    return Firings("r", pa.table(table), pa.table({"firing_id": as_hex(ids)}))


def run(folder: Path, firings: int = FIRINGS) -> Figure:
    """The rate wanted over that reached, from the buckets' commits to the last settled entry."""
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = int(server.stdout.readline())
    url, secret = f"http://127.0.0.1:{port}/hook", "TIDEGATE_SECRET_BENCH"
    hook = WebhookStatement({"account": "k"}, {}, ("k",), url, secret, {})
    book = rules.load(BOOK)
    in_flight = book.settings.webhooks_in_flight_max
    poster = WebhookPoster({f"127.0.0.1:{port}": True}, in_flight, 10)
    crew = Crew("webhook", in_flight)
    try:
        with open_store(f"sqlite:///{folder / 'webhooks.db'}", create=True) as store:
            ledger = store.of("bench", store.of("bench").lease.acquire("one", 600))
            runner = Runner(
                book,
                {"webhook": Webhooks(_NoJob(), poster, SECRETS)},  # type: ignore[arg-type]
                ledger,
                lambda: None,
                lambda: time.time_ns() // 1_000,
                crew,
            )
            begun = time.perf_counter()
            done = 0
            for bucket in range(1, BUCKETS + 1):
                fired = _firings(bucket, firings // BUCKETS)
                entry = Entry("r", hook, turn=Turn(stage=None))
                plan = Plan("bench", bucket, bucket - 1, bucket, bucket)
                taken = StoredBucket(plan, Carried(), {}, (fired,), (entry,))
                runner.add(ledger.buckets.commit(taken), [fired])
                done += runner.work(_Nothing(), patient=bucket == BUCKETS)  # type: ignore[arg-type]
            seconds = time.perf_counter() - begun
    finally:
        poster.close()
        server.terminate()
        server.wait()
    if done != BUCKETS:
        raise SystemExit(f"{done} of {BUCKETS} entries were done")
    reached = firings / seconds
    numbers = {"requests/s": reached, "in flight": float(in_flight)}
    return Figure("webhooks: wanted / reached", WANTED / reached, 1.0, numbers)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(run(Path(temporary), int(sys.argv[1]) if len(sys.argv) > 1 else FIRINGS))
