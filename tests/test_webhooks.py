"""What stands in the way of webhooks is said before anything runs (G29)."""

from __future__ import annotations

import pytest

from tidegate import rules
from tidegate.engine.policy import Policy
from tidegate.engine.webhooks import webhook_problems

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
      - webhook: {url: "https://[2001:db8::1]:8443/x"}
"""
OPS, OTHER = {"ops.example.org": False}, {"[2001:db8::1]:8443": False}
SECRETS = {"TIDEGATE_SECRET_OPS": 16 * "x", "TIDEGATE_SECRET_TOKEN": "y"}


@pytest.mark.parametrize(
    ("hosts", "environment", "said"),
    [
        ({**OPS, **OTHER}, SECRETS, []),
        ({**OPS, **OTHER}, None, []),
        (
            {"example.org": False, "[2001:db8::1]": False},
            SECRETS,
            [
                "does not let webhooks call ops.example.org (rules.r.do[0])\n"
                "    its operator writes webhook_hosts: [ops.example.org] into the file of",
                'writes webhook_hosts: ["[2001:db8::1]:8443"] into the file of --policy',
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
