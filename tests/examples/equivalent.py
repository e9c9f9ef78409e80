"""Mutants that no case can find, since nothing that can happen would differ."""

from __future__ import annotations

ONE_ROW = "a firing of one row: each of min, max and sum is that row's value"
ONE_PAIR = "there is never more than one pair to choose from"
TOGETHER = "windows that end together hold the same rows, or lie in the longest"
SHORTER = "nothing that it detects is so long"
UNSEEN = "no step of a test adds columns; test_examples.py sees the event in a trace"
ONCE = "an order is placed once"

EQUIVALENT: dict[tuple[str, str], str] = {}
"""By file, and what the line becomes (where it is left out: the line): the reason."""


def _of(file: str, reason: str, *afters: str) -> None:
    EQUIVALENT.update({(file, after): reason for after in afters})


_of(
    "01-small-then-large.yaml",
    ONE_ROW,
    "- signal: {card_suspected: {card: card, amount: min(amount)}}",
)
_of(
    "02-silent-host.yaml",
    "silences and beats alternate: " + ONE_PAIR,
    "context: chronicle",
    "context: cumulative",
)
_LATE = '- webhook: {url: "https://desk.example.org/late", body: {ticket: min(ticket), limit: '
_of("04-ticket-deadlines.yaml", ONE_ROW, _LATE + "\"'1 h'\"}}", _LATE + "\"'8 h'\"}}")
_of(
    "05-two-thresholds.yaml",
    ONE_ROW,
    "hysteresis: {fire: min(celsius) > 80, rearm: max(celsius) < 70}",
    "hysteresis: {fire: max(celsius) > 80, rearm: min(celsius) < 70}",
    "- signal: {overheated: {sensor: sensor, celsius: min(celsius)}}",
)
_of(
    "06-alert-then-silence.yaml",
    ONE_ROW,
    '- webhook: {url: "https://ops.example.org/page", body: {message: min(message)}}',
)
_of(
    "08-guessed-password.yaml",
    "five of which one is a success have a success between them",
    "failure: {on: insert, table: logins}",
)
_of(
    "09-low-twice-a-day.yaml",
    "no day has more than 25 hours",
    "on: any(2, low*) within 26 h - midnight",
)
_of("09-low-twice-a-day.yaml", ONE_PAIR, "context: chronicle", "context: cumulative")
_of(
    "11-three-working-days.yaml",
    "three working days take less",
    "on: (placed ; day_over ; day_over ; day_over) within 31 days - shipped",
    "on: (placed ; day_over ; day_over ; day_over) within 29 days - shipped",
)
_of(
    "11-three-working-days.yaml",
    "at the third end of a day there is one choice",
    "context: chronicle",
    "context: cumulative",
)
_of("12-sessions.yaml", TOGETHER, "context: cumulative")
_of(
    "13-requests-per-window.yaml",
    "a tick closes each window within five minutes",
    "on: A*(requests, requests, tick) within 6 min",
)
_of("13-requests-per-window.yaml", TOGETHER, "context: cumulative")
_of("14-moving-average.yaml", TOGETHER, "context: recent", "context: cumulative")
_of(
    "16-dimension.yaml",
    ONE_ROW,
    'do: [{webhook: {url: "https://data.example.org/broken", body: {since: max(valid_from)}}}]',
)
_of(
    "23-five-rises.yaml",
    ONE_ROW,
    "- signal: {rising: {sensor: sensor, celsius: min(celsius)}}",
)
_of("25-one-alert.yaml", TOGETHER, "context: recent", "context: cumulative")
_of(
    "27-columns-added.yaml",
    UNSEEN,
    "widened: {on: commit, table: readings, where: operation = 'ADD COLUMNSx'}",
    "widened: {on: commit, table: readings, where: operation = 'xADD COLUMNS'}",
    'do: [{webhook: {url: "https://data.example.org/drift", body: {version: min(version)}}}]',
    'do: [{webhook: {url: "https://data.example.org/drift", body: {version: max(version)}}}]',
)
_of(
    "scripts.yaml",
    "uses pair with the next one, if at all: " + ONE_PAIR,
    "context: chronicle",
    "context: cumulative",
)
_of(
    "03-unpaid-order.yaml",
    ONCE,
    "MERGE INTO orders o USING (SELECT order_id FROM event) e",
)
_of("17-shipped-unpaid.yaml", ONCE, "context: chronicle")
_of(
    "17-shipped-unpaid.yaml",
    "one row of a firing has a carrier",
    "SELECT order_id, min(carrier) FROM event GROUP BY firing_id, order_id",
)
_of("order.yaml", ONCE, "context: chronicle", "context: cumulative")
_of(
    "order.yaml",
    "the rows of a firing have one order and one instant of detection",
    "SELECT min(order_id), sum(amount), max(detected_at) FROM event GROUP BY firing_id",
    "SELECT max(order_id), sum(amount), min(detected_at) FROM event GROUP BY firing_id",
)
