"""What stands in the way of webhooks is said before anything runs (G29)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate import rules
from tidegate.engine.core.policy import Policy, load_policy, webhook_problems

BOOK = """\
rulebook: bank
events: {a: {signal: {k: bigint}}}
rules:
  r:
    on: a
    do:
      - webhook:
          url: https://ops.example.org/x
          secret: TIDEGATE_SECRET_OPS
          headers: {Authorization: "Bearer ${TIDEGATE_SECRET_TOKEN}"}
      - webhook: {url: "https://[2a00::1]:8443/x"}
"""
OPS, OTHER = {"ops.example.org": False}, {"[2a00::1]:8443": False}
SECRETS = {"TIDEGATE_SECRET_OPS": 16 * "x", "TIDEGATE_SECRET_TOKEN": "y"}


@pytest.mark.parametrize(
    ("hosts", "environment", "said"),
    [
        ({**OPS, **OTHER}, SECRETS, []),
        ({**OPS, **OTHER}, None, []),
        (
            {"example.org": False, "[2a00::1]": False},
            SECRETS,
            [
                "does not let webhooks call ops.example.org (rules.r.do[0])\n"
                "    its operator writes webhook_hosts: [ops.example.org] into the file of",
                'writes webhook_hosts: ["[2a00::1]:8443"] into the file of --policy',
            ],
        ),
        (
            {**OPS, **OTHER},
            {"TIDEGATE_SECRET_OPS": "x"},
            [
                "<text>:7:9: the secret in TIDEGATE_SECRET_OPS is shorter than 16 characters",
                "<text>:7:9: the variable TIDEGATE_SECRET_TOKEN is not set (rules.r.do[0])\n"
                "    set it where the engine is started",
            ],
        ),
    ],
)
def test_g29_hosts_and_secrets(
    hosts: dict[str, bool], environment: dict[str, str] | None, said: list[str]
) -> None:
    found = webhook_problems(rules.load(BOOK), Policy(webhook_hosts=hosts), environment)
    assert len(found) == len(said)
    for problem, part in zip(found, said, strict=True):
        assert part in str(problem)


@pytest.mark.parametrize(
    ("url", "hosts", "entry"),
    [
        ("https://[fec0::1]/x", {}, '{host: "[fec0::1]", private: true}'),
        ("https://[fec0::1]/x", {"[fec0::1]": False}, '{host: "[fec0::1]", private: true}'),
        ("https://[::ffff:0:127.0.0.1]/x", {}, '{host: "[::ffff:0:127.0.0.1]", private: true}'),
        ("https://192.88.99.1/x", {"192.88.99.1": False}, "{host: 192.88.99.1, private: true}"),
        ("https://10.0.0.7:81/x", {"10.0.0.7:81": False}, '{host: "10.0.0.7:81", private: true}'),
        ("https://[2a00::1]/x", {}, '"[2a00::1]"'),
        ("http://[::1]/x", {}, '{host: "[::1]", private: true}'),
    ],
)
def test_g29_an_address_that_no_webhook_may_call_is_refused_and_its_remedy_is_one(
    tmp_path: Path, url: str, hosts: dict[str, bool], entry: str
) -> None:
    text = "rulebook: bank\nevents: {a: {signal: {k: bigint}}}\n"
    text += f'rules: {{r: {{on: a, do: [{{webhook: {{url: "{url}"}}}}]}}}}\n'
    book = rules.load(text)
    (problem,) = webhook_problems(book, Policy(webhook_hosts=hosts))
    assert f"writes webhook_hosts: [{entry}] into the file" in str(problem)
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"webhook_hosts: [{entry}]\n")
    assert webhook_problems(book, load_policy(policy)) == []
