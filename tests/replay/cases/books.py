"""A rulebook, and test files of it."""

from __future__ import annotations

from pathlib import Path

from tidegate.engine.replay.cases.model import CaseFile
from tidegate.engine.replay.cases.reader import read_cases

BANK = """\
rulebook: bank
timezone: Europe/Berlin
tables:
  accounts: {path: ./lake/accounts, key: [account_id]}
  transactions: {path: ./lake/transactions, key: [transaction_id]}
  log: {path: ./lake/log}
events:
  withdrawal: {on: insert, table: transactions, where: kind = 'withdraw'}
  blocked: {on: update, of: [blocked], table: accounts}
  empty: {signal: {atm_id: bigint, amount: "decimal(12,2)", at: timestamp}}
  told: {signal: {account_id: bigint}}
rules:
  four:
    on: any(4, withdrawal*)
    per: account_id
    context: chronicle
    if: sum(amount) > 1000
    do:
      - signal: {told: {account_id: account_id}}
  tell:
    on: empty
    do:
      - webhook: {url: "https://ops.example.org/alarm", body: {atm: max(atm_id)}}
  seen: {on: withdrawal}
  block:
    on: told
    do:
      - sql: MERGE INTO accounts a USING event e ON a.account_id = e.account_id
             WHEN MATCHED THEN UPDATE SET blocked = true
  write:
    on: blocked
    do:
      - sql: INSERT INTO log (account_id) SELECT account_id FROM event
"""
SCHEMAS = """\
rulebook: bank.yaml
schemas:
  accounts: account_id BIGINT, blocked BOOLEAN
  transactions: "transaction_id BIGINT, account_id BIGINT, kind STRING, amount DECIMAL(12,2)"
  log: account_id BIGINT
"""


def written(folder: Path, text: str) -> Path:
    """A test file beside the rulebook."""
    (folder / "bank.yaml").write_text(BANK)
    file = folder / "bank.test.yaml"
    file.write_text(text)
    return file


def read(folder: Path, text: str) -> CaseFile:
    """The cases of a text."""
    return read_cases(written(folder, text))


def case(steps: str, expect: str = "{}") -> str:
    """A test file with one case."""
    return f"{SCHEMAS}tests:\n- name: a\n  steps: {steps}\n  expect: {expect}\n"
