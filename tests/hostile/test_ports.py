"""The ports of a Spark that was started here, which other programs of the machine reach (G28)."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidegate.connectors.delta.session import _ports_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RPC_REQUEST, RPC_FAILURE = 3, 5
OBJECT = bytes.fromhex("aced0005740001") + b"a"
"""A String of Java, serialised."""


def request(receiver: str, content: bytes) -> bytes:
    """A request as Spark's programs send it: a frame, and in it from nobody, to a receiver."""
    body = b"\0\0" + struct.pack(">H", len(receiver)) + receiver.encode() + content
    message = struct.pack(">BqI", RPC_REQUEST, 7, len(body)) + body
    return struct.pack(">q", len(message) + 8) + message


def answer_of(port: int, sent: bytes) -> bytes:
    """What comes back: the message of one frame; none if the other side says nothing."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        found = b""
        with suppress(TimeoutError, ConnectionResetError):
            while len(found) < 8 or len(found) < struct.unpack_from(">q", found)[0]:
                if not (got := client.recv(65_536)):
                    break
                found += got
    return found[8:]


def test_g28_sparks_ports_ask_for_a_secret(spark: SparkSession) -> None:
    """Without one, the object is read, and only then its receiver is looked for in vain."""
    context = spark.sparkContext
    blocks = context._jsc.sc().env().blockManager().blockManagerId().port()  # type: ignore[attr-defined]
    for port in (int(context.getConf().get("spark.driver.port", "")), int(blocks)):
        answer = answer_of(port, request("nobody", OBJECT))
        assert b"nobody" not in answer
        assert (answer[:1] == bytes([RPC_FAILURE]), b"SaslMessage" in answer) == (True, True), port


def test_g28_the_secret_is_in_no_setting_and_on_no_command_line(spark: SparkSession) -> None:
    settings = dict(spark.sparkContext.getConf().getAll())
    assert settings["spark.authenticate"] == "true"
    assert not [name for name in settings if "authenticate.secret" in name]
    process = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    line = Path(f"/proc/{process}/cmdline")
    if line.exists():
        assert b"spark.authenticate=true" in line.read_bytes()
        assert b"secret" not in line.read_bytes()


@pytest.mark.parametrize(
    ("master", "ours"),
    [("local", True), ("local[*]", True), ("local[2, 3]", True), ("local-cluster[2,1,1024]", False),
     ("spark://host:7077", False), ("yarn", False), ("k8s://host", False)],
)  # fmt: skip
def test_other_masters_have_the_secret_of_their_own(master: str, ours: bool) -> None:
    assert bool(_ports_conf(master)) is ours
