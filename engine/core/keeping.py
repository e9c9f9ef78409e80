"""For how long Delta keeps a table's past, and who still needs some of it.

Two limits of a table's properties take a version away. Log cleaning deletes its commit, after
`delta.logRetentionDuration`: by whole days, UTC, when a later checkpoint is written. And VACUUM
deletes files after `delta.deletedFileRetentionDuration`: the change files of a commit so long after
it, the data files of a version so long after the commit that has replaced them.

So `gone_at` says when a version may be gone at the earliest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

LOG = "delta.logRetentionDuration"
FILES = "delta.deletedFileRetentionDuration"
DAY_MICROS = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long a table's past is kept, microseconds: `log_micros`, its commits (None: for ever, as
    with `delta.enableExpiredLogCleanup` = false); `files_micros`, what old versions are made of.
    `oldest`, `head`: the first and the last version in its log."""

    table: str
    log_micros: int | None
    files_micros: int
    oldest: int = 0
    head: int = 0

    @property
    def stands_micros(self) -> int:
        """For how long an engine may stand still before a commit may be gone that it has not
        read."""
        kept = self.files_micros
        return kept if self.log_micros is None else min(kept, self.log_micros)

    @property
    def limit(self) -> str:
        """The property that says so."""
        return FILES if self.stands_micros == self.files_micros else LOG


class Need(StrEnum):
    """Who needs a version: the feed, to read it; a condition, to see the table as of it; a queue,
    to learn from it what became of its first entry (G16b)."""

    CURSOR = "cursor"
    CONDITION = "condition"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class Claim:
    """A version of a table that is still needed.

    `of`: the table itself, or the rule. `version`: None if it is not known which. `instant`: when
    it was committed, microseconds; if not `exact`, at that instant or later. `replaced`: when the
    next version was committed, if the version is read and not its changes.
    """

    need: Need
    table: str
    of: str
    version: int | None
    instant: int
    exact: bool = True
    replaced: int | None = None


@dataclass(frozen=True, slots=True)
class Deadline:
    """When what is claimed may be gone, microseconds, and by which property. `gone`: it is gone
    already, or that time is past."""

    claim: Claim
    at: int
    by: str
    gone: bool


def deadlines(claims: Iterable[Claim], keepings: Mapping[str, Keeping], now: int) -> list[Deadline]:
    """The deadline of each claim on a table whose `keepings` are known, the first one first.

    Example: a table keeps files for 7 days. The engine has stood since Monday, 10:00, and the first
    commit after that came at 11:00. It may be gone from next Monday, 11:00 on.
    """
    found = []
    for claim in claims:
        keeping = keepings.get(claim.table)
        if keeping is None:
            continue
        only = claim.need is Need.QUEUE
        ends = gone_at(keeping, claim.instant, log_only=only, replaced=claim.replaced)
        if claim.version is not None and claim.version < keeping.oldest:
            ends = min(ends[0], now) if ends else now, LOG
        if ends is not None:
            at, by = ends
            found.append(Deadline(claim, at, by, gone=at <= now))
    return sorted(found, key=lambda one: (one.at, one.claim.need, one.claim.table, one.claim.of))


def gone_at(
    keeping: Keeping, instant: int, *, log_only: bool = False, replaced: int | None = None
) -> tuple[int, str] | None:
    """When a version may be gone at the earliest, microseconds, and by which property; None: never.
    `instant`: of its commit. `log_only`: only its commit is needed, not what it is made of.
    `replaced`: see `Claim`."""
    since = instant if replaced is None else replaced
    ends = [] if log_only else [(since + keeping.files_micros, FILES)]
    if keeping.log_micros is not None:
        whole_days = -(-instant // DAY_MICROS) * DAY_MICROS
        ends.append((whole_days + keeping.log_micros, LOG))
    return min(ends, default=None)
