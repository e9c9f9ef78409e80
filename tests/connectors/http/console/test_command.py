"""`--console` on the command line."""

from __future__ import annotations

from http.client import HTTPConnection
from pathlib import Path

from click.testing import CliRunner

from tests.connectors.http.conftest import BOOK
from tests.connectors.http.test_server import process
from tidegate.connectors.http import Address
from tidegate.engine.cli.main import main


def status(address: Address, path: str) -> int:
    client = HTTPConnection(address.host, address.port, timeout=20)
    client.request("GET", path)
    return client.getresponse().status


def test_serve_shows_a_console_where_it_is_asked_to(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(BOOK)
    named = ("--rulebook-file", str(file))
    with process(*named, "--console", "--console-reports", str(tmp_path)) as (_, address):
        assert status(address, "/console/overview") == 200
        assert status(address, "/console/backtests") == 200
        assert status(address, "/healthz") == 200


def test_a_console_is_a_part_of_an_inbox(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(BOOK)
    for words, said in (
        (["run", str(file), "--console"], "--console is a part of --http"),
        (["run", str(file), "--http", "127.0.0.1:0", "--console-reports", str(tmp_path)],
         "--console-reports is for --console"),
        (["serve", "--rulebook-file", str(file), "--console-reports", str(tmp_path)],
         "--console-reports is for --console"),
    ):  # fmt: skip
        found = CliRunner().invoke(main, words)
        assert (found.exit_code, said in found.stderr) == (2, True), found.output
