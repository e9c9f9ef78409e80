"""The files to deploy by: they can be read, and name only what there is."""

from __future__ import annotations

import configparser
import importlib.util
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import ROOT
from tests.support.command_lines import check
from tidegate.connectors.http.app import App
from tidegate.engine.core.policy import load_policy
from tidegate.engine.store.address import parse_url
from tidegate.rules.errors import EngineError, InputError

FOLDER = ROOT / "docs" / "deploy"
CONTAINER = (FOLDER / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
ENGINE = COMPOSE["services"]["engine"]


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} +(.*)$", CONTAINER, re.MULTILINE)


def unit() -> configparser.RawConfigParser:
    read = configparser.RawConfigParser()
    read.optionxform = str  # type: ignore[assignment, method-assign]  # systemd's keys have capitals
    read.read(FOLDER / "tidegate@.service", encoding="utf-8")
    return read


def command_lines() -> list[tuple[str, list[str]]]:
    """Every command of tidegate in these files."""
    started = shlex.split(unit()["Service"]["ExecStart"])
    found = [("unit", started[1:]), ("compose", ENGINE["command"])]
    found += [("Containerfile", json.loads(text)) for text in instructions("CMD")]
    for text in instructions("RUN"):
        found += [
            ("Containerfile", shlex.split(line)[1:])
            for line in re.split(r"&&|\|", text)
            if line.strip().startswith("tidegate ")
        ]
    for file in ("alerts.yaml", "grafana.json"):
        text = (FOLDER / file).read_text(encoding="utf-8")
        found += [(file, words.split()) for words in re.findall(r"tidegate ((?:[a-z-]+ ?)+)", text)]
    return [(file, [word for word in words if word]) for file, words in found]


@pytest.mark.parametrize("line", command_lines(), ids=lambda line: f"{line[0]}: {line[1]}"[:60])
def test_a_command_and_its_options_exist(line: tuple[str, list[str]]) -> None:
    check(line[1])


def test_there_are_commands() -> None:
    assert len(command_lines()) > 12
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["tidegate"]


def test_the_image_is_built_whole_and_runs_without_rights() -> None:
    stages = re.findall(r"^FROM (\S+)(?: AS (\w+))?$", CONTAINER, re.MULTILINE)
    assert len({image for image, _ in stages}) == 1  # what is compiled fits
    (version,) = re.findall(r"python:(\d\.\d+)-", stages[0][0])
    assert set(re.findall(r"python(\d\.\d+)/site-packages", CONTAINER)) == {version}
    used = set(re.findall(r"--from=(\w+)", CONTAINER))
    assert used == {name for _, name in stages if name}
    last = CONTAINER[CONTAINER.rindex("FROM ") :]
    assert last.index("USER 10001") < last.index("connectors.java.jars") < last.index("ENTRYPOINT")
    for module in re.findall(r"-m (tidegate\.[\w.]+)", CONTAINER):
        assert importlib.util.find_spec(module) is not None
    shown = re.findall(r"rules/examples/\w+", CONTAINER)
    assert shown
    assert all((ROOT / name).is_dir() for name in shown)
    left_out = (FOLDER / "Containerfile.dockerignore").read_text(encoding="utf-8").split()
    assert not {"rules", "engine", "connectors", "migrations", "tidegate", "README.md"} & {
        *left_out
    }


def test_what_is_asked_for_health_answers() -> None:
    routes = set(re.findall(r'"(/\w+)": \("GET"', _source(App)))
    (check_line,) = instructions("HEALTHCHECK")
    words = json.loads(check_line[check_line.index("[") :])
    compile(words[2], "HEALTHCHECK", "exec")
    assert set(re.findall(r"127\.0\.0\.1:8080(/\w+)", words[2])) == {"/healthz"} <= routes
    port = instructions("EXPOSE")[0]
    for _, line in command_lines()[:3]:
        assert line[line.index("--http") + 1].endswith(f":{port}")


def _source(of: type) -> str:
    file = importlib.util.find_spec(of.__module__)
    assert file is not None
    assert file.origin is not None
    return Path(file.origin).read_text(encoding="utf-8")


def test_what_has_to_be_written_can_be_with_a_root_that_is_read_only() -> None:
    assert ENGINE["read_only"] is True
    assert ENGINE["tmpfs"] == ["/tmp"]
    volumes = json.loads(instructions("VOLUME")[0])
    mounted = {text.split(":")[1] for text in ENGINE["volumes"] if not text.endswith(":ro")}
    assert "/var/cache/tidegate" in mounted & set(volumes)
    assert f"XDG_CACHE_HOME={Path(volumes[0]).parent}" in instructions("ENV")[0]
    assert {text.rpartition(":")[0].partition(":")[0] for text in ENGINE["volumes"]} > {"cache"}
    assert set(COMPOSE["volumes"]) == {"store", "cache"}


def test_the_policy_lists_the_keys_whose_secrets_are_set() -> None:
    """Without a key nothing listens on an address that others reach."""
    policy = load_policy(FOLDER / "policy.yaml")
    names = {f"TIDEGATE_SECRET_{name.upper()}" for name in policy.monitor_keys}
    given = ENGINE["environment"]
    assert {name for name in given if name.startswith("TIDEGATE_SECRET_")} == names
    assert f"./policy.yaml:{given['TIDEGATE_POLICY']}:ro" in ENGINE["volumes"]
    url = given["TIDEGATE_STORE"].replace("${POSTGRES_PASSWORD}", "s")
    assert parse_url(url).host == "store"
    assert ENGINE["depends_on"] == {"store": {"condition": "service_healthy"}}


def test_a_service_is_not_started_again_for_what_stays_wrong() -> None:
    service = unit()["Service"]
    never = set(map(int, service["RestartPreventExitStatus"].split()))
    assert service["Restart"] == "on-failure"
    assert InputError.exit_code in never
    assert 2 in never  # usage, by click
    assert EngineError.exit_code not in never


def test_a_service_has_time_for_the_statements_in_hand_and_java_is_spared() -> None:
    service = unit()["Service"]
    assert service["KillMode"] == "mixed"
    assert "KillSignal" not in service
    assert instructions("STOPSIGNAL") == ["SIGTERM"]
    assert service["TimeoutStopSec"] == "15min"
    assert ENGINE["stop_grace_period"] == "15m"
    assert "MemoryDenyWriteExecute" not in service
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"


def test_prometheus_reads_what_compose_opens() -> None:
    read: Any = yaml.safe_load((FOLDER / "prometheus.yaml").read_text(encoding="utf-8"))
    assert all((FOLDER / name).exists() for name in read["rule_files"])
    (job,) = read["scrape_configs"]
    (place,) = job["static_configs"][0]["targets"]
    assert ENGINE["ports"] == [f"{place}:8080"]
