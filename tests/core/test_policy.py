"""The operator's policy: one file, read whole, never part of a rulebook (G27, G29)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.engine.core.policy import VARIABLE, Policy, load_policy
from tidegate.rules.errors import InputError


def test_a_policy_says_what_the_operator_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "functions: [reflect, bank.tax]\n"
        "python: [taxes.rate]\n"
        "webhook_hosts: [ops.example.org, '*.example.com:8443', {host: '[::1]', private: true}]\n"
        "at_least_once: [delete]\n"
        "inbox_keys: {shop: [atm_empty, restocked]}\n"
        "listen_keys: {board: [blocked]}\n"
        "monitor_keys: [prometheus]\n"
        "console_keys: {ada: [view, operate], bob: [view]}\n"
    )
    wanted = Policy(
        frozenset({"reflect", "bank.tax"}),
        frozenset({"taxes.rate"}),
        {"ops.example.org": False, "*.example.com:8443": False, "[::1]": True},
        frozenset({"delete"}),
        {"shop": frozenset({"atm_empty", "restocked"})},
        {"board": frozenset({"blocked"})},
        frozenset({"prometheus"}),
        {"ada": frozenset({"view", "operate"}), "bob": frozenset({"view"})},
    )
    assert load_policy(file) == wanted
    monkeypatch.delenv(VARIABLE, raising=False)
    assert load_policy(None) == Policy()
    monkeypatch.setenv(VARIABLE, str(file))
    assert load_policy(None) == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("function: [reflect]", "did you mean 'functions'?"),
        ("functions: reflect", "expected a list"),
        ("functions: ['drop table']", "'drop table' is not a function"),
        ("webhook_hosts: ['http://x']", "is not a host"),
        ("inbox_keys: {shop: []}", "the list is empty"),
        ("- functions", "a policy is a mapping"),
        ("functions: [a]\nfunctions: [b]", "duplicate key"),
        ("rulebook: bank", "unknown key 'rulebook'"),
    ],
)
def test_what_a_policy_does_not_know_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        load_policy(file)
    assert said in str(refused.value)
    assert str(file) in str(refused.value)


def test_a_policy_that_is_not_there_is_no_empty_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_policy(tmp_path / "none.yaml")
