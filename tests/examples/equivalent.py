"""Mutants that no case can find, since nothing that can happen would differ."""

from __future__ import annotations

ONE_ROW = "a firing of one row: each of min, max and sum is that row's value"
ONE_PAIR = "there is never more than one pair to choose from"
SHORTER = "nothing that it detects is so long"
ONCE = "an order is placed once"
ONE_INSTANT = "the rows of a firing have one start and one instant of detection"
ONE_PRICE = "a symbol has one row"
CLOSED = "what nothing has opened is not closed"

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
    "16-dimension.yaml",
    ONE_ROW,
    'do: [{webhook: {url: "https://data.example.org/broken", body: {since: max(valid_from)}}}]',
)
_of(
    "23-five-rises.yaml",
    ONE_ROW,
    "- signal: {rising: {sensor: sensor, celsius: min(celsius)}}",
)
_of(
    "27-columns-added.yaml",
    ONE_ROW,
    'do: [{webhook: {url: "https://data.example.org/drift", body: {version: min(version)}}}]',
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
_of(
    "load.yaml",
    "the condition fails where a load has no rows",
    "load: {on: commit, table: readings, where: operation = 'WRITE'}",
)
_of(
    "load.yaml",
    "a commit takes two microseconds",
    "on: A*(begin_of load, bad or good, end_of load) within 2 s",
)
_of(
    "load.yaml",
    ONE_INSTANT,
    "SELECT min(detected_at), count(event_type), count_if(event_type = 'bad')",
)
_of(
    "report.yaml",
    "no two of its evenings are so far apart",
    "on: A*(evening, ordered, evening) within 15 days",
    "on: A*(evening, ordered, evening) within 13 days",
)
_of(
    "report.yaml",
    ONE_INSTANT,
    "SELECT min(started_at), max(detected_at), count(order_id), coalesce(sum(amount), 0)",
    "SELECT max(started_at), min(detected_at), count(order_id), coalesce(sum(amount), 0)",
)
_of(
    "heartbeat.yaml",
    ONE_INSTANT,
    "SELECT device, 'silent', max(started_at),",
    "min(detected_at) FROM event GROUP BY firing_id, device",
    "SELECT device, 'back', max(started_at), max(detected_at) FROM event GROUP BY firing_id,",
    "SELECT device, 'back', min(started_at), min(detected_at) FROM event GROUP BY firing_id,",
)
_of(
    "heartbeat.yaml",
    "silences and beats alternate: " + ONE_PAIR,
    "context: recent",
    "context: cumulative",
)
_of(
    "28-fewer-rows.yaml",
    "a label stands for one row",
    "min(if(label = 'new', cast(operation_metrics['numOutputRows'] as bigint), null)) < 0.95 *",
    "min(if(label = 'old', cast(operation_metrics['numOutputRows'] as bigint), null))",
)
_of(
    "19-month-end.yaml",
    "no month is longer than 31 days and an hour",
    "on: A*(month_over, sale, month_over) within 33 days",
)
_of(
    "19-month-end.yaml",
    ONE_INSTANT,
    "SELECT min(detected_at), count(event_type), coalesce(sum(amount), 0)",
)
_of(
    "21-working-evenings.yaml",
    ONE_INSTANT,
    "SELECT min(e.detected_at), count(o.order_id) FROM event e LEFT JOIN orders o ON o.open",
)
_of(
    "price.yaml",
    ONE_INSTANT,
    "SELECT to_date(min(started_at)), count(*), min_by(sample, occurred_at), min(sample),",
)
_of(
    "bank.yaml",
    "what was not below zero and is so now has changed",
    "overdrawn: {on: update, table: accounts,",
)
_of(
    "bank.yaml",
    "one row of a firing has an account, and one a name",
    "SELECT 'takeover', min(account_id), max(name), 'phone changed, then money withdrawn',",
    "SELECT 'takeover', max(account_id), min(name), 'phone changed, then money withdrawn',",
)
_of("bank.yaml", ONE_INSTANT, "min(detected_at)")
_of("bank.yaml", ONE_ROW, "if: min(balance) > 0")
_of(
    "10-repricing-loop.yaml",
    "each step of a case is a bucket of its own, and changes a cost once",
    "USING (SELECT item, min_by(cost, occurred_at) AS cost FROM event GROUP BY item) e",
)
_of(
    "10-repricing-loop.yaml",
    "at the third price there are three to choose from",
    "context: chronicle",
    "context: cumulative",
)
_of(
    "15-loads.yaml",
    "a commit takes two microseconds",
    "on: A*(begin_of load, bad or good, end_of load) within 2 s",
    "on: not(good or bad)[begin_of load, end_of load] within 2 s",
)
_of(
    "15-loads.yaml",
    "a load ends before the next one begins",
    "context: restricted",
    "context: chronicle",
    "context: cumulative",
)
for _file in ("price.yaml", "22-price-samples.yaml"):
    _of(
        _file,
        "an opening takes the place of one that was not closed",
        "opening: {at: 09:30, days: mon-sat, holidays: US}",
        "opening: {at: 09:30, days: mon-fri}",
    )
    _of(_file, ONE_PRICE, "acme: SELECT min(price) FROM prices WHERE symbol = 'ACME'")
    _of(
        _file,
        CLOSED,
        "closing: {at: 16:00, days: mon-sat, holidays: US}",
        "closing: {at: 16:00, days: mon-fri}",
    )
