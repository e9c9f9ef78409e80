"""PySpark's stack traces of a Java that has ended are not told; others are."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from py4j import protocol
from py4j.java_gateway import GatewayClient
from pyspark import accumulators

from tidegate.connectors.delta.session import quieten_deaths

TOKEN = "secret"


@pytest.fixture
def context() -> Iterator[Any]:
    """With the server to which Java sends what tasks have added up."""
    before = list(logging.getLogger().filters)
    server = accumulators._start_update_server(TOKEN, False, None)  # type: ignore[attr-defined]
    yield SimpleNamespace(_accumulatorServer=server)
    server.shutdown()
    logging.getLogger().filters[:] = before


@pytest.mark.parametrize(("said", "told"), [(TOKEN, ""), ("others", "ValueError: The value of")])
def test_a_java_that_ends_leaves_its_connection_without_a_word(
    context: Any, capfd: pytest.CaptureFixture[str], said: str, told: str
) -> None:
    quieten_deaths(context)
    with socket.create_connection(context._accumulatorServer.server_address, 10) as java:
        java.sendall(said.ljust(len(TOKEN)).encode())
        java.shutdown(socket.SHUT_WR)
        while java.recv(100):  # until the other end has heard of it
            pass
    printed = capfd.readouterr().err
    assert ("Traceback" in printed, told in printed) == (bool(told), True)


def test_a_call_that_java_does_not_answer_is_told_by_who_made_it(
    context: Any, caplog: pytest.LogCaptureFixture
) -> None:
    reset = protocol.Py4JNetworkError("reset", when=protocol.ERROR_ON_RECEIVE)

    def send(_: str) -> None:
        raise reset

    quieten_deaths(context)
    java = GatewayClient()
    java._get_connection = lambda: SimpleNamespace(send_command=send, close=lambda _: None)
    assert java.send_command("one") == protocol.ERROR  # of which its caller makes an exception
    assert not caplog.records
    logging.error("of somebody else", exc_info=reset)
    assert "of somebody else" in caplog.text
