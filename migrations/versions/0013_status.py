"""What became of detections: those that fired, and those whose condition failed; what an engine
does just now, and when it looked last."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
_FAILED = 2  # in the two lower bits of an outcome


def upgrade() -> None:
    for name in ("fired", "condition_failed"):
        number = sa.Column(name, sa.BigInteger, nullable=False, server_default="0")
        op.add_column("rule_totals", number)
    op.add_column("rule_totals", sa.Column("last_fired_at", sa.BigInteger))
    _count()
    op.drop_column("rule_totals", "last_detected_at")
    for name in ("state", "doing"):
        op.add_column("leases", sa.Column(name, sa.Text, nullable=False, server_default=""))
    for name in ("commits", "signals"):
        number = sa.Column(name, sa.BigInteger, nullable=False, server_default="0")
        op.add_column("leases", number)
    for name in ("oldest", "next_timer", "looked_at", "seen_until", "state_at"):
        op.add_column("leases", sa.Column(name, sa.BigInteger))


def _count() -> None:
    """Of what is forgotten nobody knows whose condition failed: that counts as fired, as it did."""
    connection = op.get_bind()
    failed = _failed_ones(connection)
    same = "d.rulebook = rule_totals.rulebook AND d.rule = rule_totals.rule"
    damped = f"(SELECT coalesce(sum(firing_count), 0) FROM damped_totals AS d WHERE {same})"  # noqa: S608
    for (rulebook, rule), number in failed.items():
        one = {"number": number, "rulebook": rulebook, "rule": rule}
        update = "UPDATE rule_totals SET condition_failed = :number "
        connection.execute(sa.text(update + "WHERE rulebook = :rulebook AND rule = :rule"), one)
    connection.execute(
        sa.text(f"UPDATE rule_totals SET fired = firing_count - condition_failed - {damped}")  # noqa: S608
    )
    connection.execute(
        sa.text("UPDATE rule_totals SET last_fired_at = last_detected_at WHERE fired > 0")
    )


def _failed_ones(connection: sa.Connection) -> Counter[tuple[str, str]]:
    query = "SELECT rulebook, rule, firing_count, outcomes FROM firings WHERE outcomes IS NOT NULL"
    found: Counter[tuple[str, str]] = Counter()
    for rulebook, rule, count, outcomes in connection.execute(sa.text(query)):
        codes = pa.decompress(outcomes, count, codec="zstd", asbytes=True)
        found[rulebook, rule] += sum(code & 3 == _FAILED for code in codes)
    return found
