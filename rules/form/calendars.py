"""The calendars of a rulebook, of clocks and of the business days that rules count (S11): days of
the week, exceptions, holidays."""

from __future__ import annotations

from tidegate.rules.analysis.draft import Draft
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.clock_texts import region_code
from tidegate.rules.form import texts
from tidegate.rules.yaml import kinds as k
from tidegate.rules.yaml import scalars as s
from tidegate.rules.yaml.kinds import Record, Report

KEYS = ("days", "except", "holidays")
DAYS = k.by_form(
    "days of the week",
    one=s.parsed("days", texts.days, "mon-fri"),
    many=k.listing(s.parsed("a day", texts.days, "sat"), 1),
)
HOLIDAYS = k.one_or_many(
    "a region or a list of regions", s.parsed("a region", region_code, "DE-BE")
)


def count_business_days(book: Draft, report: Report) -> None:
    """Give the business days in each rule's expression the rule's calendar."""
    for name, node, scalar in book.expressions():
        record = book.records("rules")[name]
        written = [key for key in KEYS if record.has(key)]
        if not x.business_calendars(node):
            own = [key for key in written if record.place(key).path.startswith("rules.")]
            for key in own[:1]:
                message = f"the rule's expression counts no business days: {key} says nothing"
                hint = "write [3 business days] in it, or leave the key out;"
                hint += f" a clock event has {key} of its own"
                report.warn("no-business-days", message, record.place(key), hint)
            continue
        record.values["on"] = (x.counted_by(node, _calendar(record)), scalar)


def _calendar(record: Record) -> x.BusinessCalendar:
    days = texts.united(record.get("days", ()))
    return x.BusinessCalendar(
        days or x.BusinessCalendar().days,
        tuple(sorted({*record.get("except", ())})),
        tuple(sorted({*record.get("holidays", ())})),
    )
