"""The outbox: entries, the outcomes of attempts; what operators ask for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple, TypeVar

import pyarrow as pa

from tidegate.engine.core.statement import SqlStatement, Statement
from tidegate.engine.core.values import Answers, Firings, Signal

S = TypeVar("S", bound=Statement)


@dataclass(frozen=True, slots=True)
class Control:
    """A request of an operator, effective at the next plan (G24). By `kind`:

    `reset`     sets the cursor of table `subject`: `version` is read next, None: what comes after
                the head (G10)
    `enable`    lets rule `subject` go on that is parked or disabled (G13)
    `disable`   stops rule `subject`; option `purge`: its open entries are sealed and dead
    `skip`      seals entry `subject` and passes it over; option `unsealed`: also if it cannot be
                sealed
    `redrive`   seals entry `subject` and puts a new one in its place (G18); option `may-double`:
                also if its fate is unknown, or another history passed it
    `reload`    takes over version `subject` of the rulebook; option: in words, what a version that
                changes no text does: `disable RULE for K=V`, `enable RULE for K=V`, `put RULE`,
                `drop RULE`

    `asked_at`: when it was asked for, by the store's clock. `asked_by`: by whom, as
    `user@machine`, or by the rule whose action it was.
    """

    id: int
    kind: str
    subject: str
    version: int | None = None
    option: str | None = None
    asked_at: int = 0
    asked_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of an entry. By `state`:

    `pending`    not tried yet, or waiting for a retry
    `held`       out of attempts, or its `fate` is passed or unknown; it blocks its rule's queue
    `done`       its effect has landed
    `dead`       it is not tried again
    `skipped`    an operator passed it over
    `redriven`   another entry took its place

    `error`: of the last attempt, without values of the user's tables. `details` may have them.
    `next_attempt_at`: when it is due again after a failure, microseconds."""

    state: str = "pending"
    attempts: int = 0
    error: str | None = None
    details: str | None = None
    fate: str | None = None
    next_attempt_at: int = 0

    def finished(self, state: str, error: str | None = None) -> Progress:
        """The progress of an entry that is not tried again."""
        return Progress(state=state, attempts=self.attempts, error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """When an entry may run.

    `order`: its position in the bucket's order of actions (G15). `place`: its position in its
    rule's queue, ties broken by `order`. The place is the entry's own number, or the number of the
    entry that it replaces: a redriven one, or the condition that made it.

    `stage`: within a bucket, a stage begins after all entries of the stages before it were tried.
    Detached entries have None: they wait for nobody, and nobody waits for them.

    Example: 3 (stage 0) and 4 (stage 0) may run together, then 5 (stage 1)."""

    order: int = 0
    place: int = 0
    stage: int | None = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One outbox entry: one statement for a set of firings, or for one firing (G16).

    `number`: from the store's one increasing sequence, drawn when the entry is stored (0 before).
    `firing_ids`: hex ids of the firings that it is for, None: all of the rule that held.
    `otherwise_at`: the deadline after which the rule's alternative is done instead. `alternative`:
    whether this entry belongs to one (G23).

    `app_id` and `number` are txnAppId and txnVersion of its marker in Delta's log.
    `target_version`: the target's latest version before the entry was stored. Its effect is in a
    later one (G16b).
    """

    rule: str
    statement: Statement
    firing_ids: tuple[str, ...] | None = None
    number: int = 0
    bucket: int = 0
    depth: int = 1
    turn: Turn = Turn()
    progress: Progress = Progress()
    app_id: str = ""
    target_version: int | None = None
    otherwise_at: int | None = None
    alternative: bool = False

    @property
    def state(self) -> str:
        return self.progress.state

    @property
    def kind(self) -> str:
        return self.statement.kind

    @property
    def target(self) -> str | None:
        """The table that it writes."""
        return self.statement.target

    def stating(self, kind: type[S]) -> S:
        """Its statement, of a kind."""
        if not isinstance(self.statement, kind):
            raise TypeError(f"entry {self.number} is a {self.kind}")
        return self.statement

    def numbered(self, number: int, bucket: int) -> Entry:
        """The entry as it is stored. Without a place in its rule's queue, its number is its
        place."""
        placed = self.placed(self.turn.place or number)
        return replace(placed, number=number, bucket=bucket)

    def placed(self, place: int) -> Entry:
        return replace(self, turn=replace(self.turn, place=place))

    @property
    def queue(self) -> str:
        """The name of its queue. The entries of a queue run in order, one at a time. A rule has up
        to four: actions and webhooks, each of its `do` and of its `otherwise`. Example:
        `pay/otherwise/webhook`."""
        alternative = "/otherwise" if self.alternative else ""
        return f"{self.rule}{alternative}{'/webhook' if self.kind == 'webhook' else ''}"

    @property
    def position(self) -> tuple[int, int, int]:
        """Its position in its queue."""
        return self.turn.place, self.turn.order, self.number

    @property
    def ways_past(self) -> tuple[str, str]:
        """See the function."""
        return ways_past(self.number, self.progress.fate)

    @property
    def is_action(self) -> bool:
        """Whether it belongs to its rule's `do`: it is neither a condition nor an alternative."""
        return self.kind != "condition" and not self.alternative

    @property
    def ordered(self) -> bool:
        """Whether later stages wait for its first attempt. They do not wait for a detached entry,
        for one that was tried, and for one that took the place of another."""
        turn = self.turn
        return turn.stage is not None and not self.progress.attempts and turn.place == self.number

    def same_set(self, other: Entry) -> bool:
        """Whether both are for the same firings of one rule, in the same branch (`do`,
        `otherwise`)."""
        mine, its = (
            (e.bucket, e.rule, e.firing_ids, e.alternative, e.kind == "condition")
            for e in (self, other)
        )
        return mine == its

    def excludes(self, other: Entry) -> bool:
        """Whether the two may not run at the same time: one writes a table that the other reads or
        writes. Two that only append may.

        Example: MERGE INTO a excludes INSERT INTO b SELECT .. FROM a; INSERT INTO a .. FROM event
        does not exclude another such."""
        mine, its = self.statement, other.statement
        if not (isinstance(mine, SqlStatement) and isinstance(its, SqlStatement)):
            return False
        if mine.target is not None and mine.target == its.target:
            return not (mine.appends and its.appends) or mine.target in mine.reads | its.reads
        return mine.target in its.reads or its.target in mine.reads


class Fate(Enum):
    """What became of an entry, as its target's log says (G16b)."""

    EFFECT = "effect"  # a commit names this store and entry
    SEALED = "sealed"  # a commit is its seal: it cannot land any more
    ABSENT = "absent"  # its marker is below its number: it has not landed
    PASSED = "passed"  # its marker belongs to another history, and no commit is the entry's
    UNKNOWN = "unknown"  # the log was cleaned, or the target cannot be read


class Effect(NamedTuple):
    """The commit of an entry: the version of its target, and how many rows it wrote; None where the
    commit does not say."""

    version: int
    rows: int | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one entry: its new `progress`. All of it is stored in one transaction.

    `signals`: raised by the entry, inserted when it is done (G22). `ends`: signals of the action's
    end, inserted when it is done, for the firings of which no other statement is left. `fails`:
    signals of its failure, inserted when it is dead. `asks`: kind and subject of a control that is
    inserted when it is done.

    `successors`: new entries, such as the one in place of a redriven entry, or the actions of a
    condition. `firing_ids`: the firings that the entry is for from now on, None: as before. The
    others are in `successors`. `control`: the request that this outcome answers.

    `begun_at`, `settled_at`: when its attempt began and ended, by the engine's clock; None: there
    was none. `effect`: of an entry that is done, where it is known.

    Of a condition: `firings`, decided; `answers`, from which damping follows just before the
    outcome is settled; `memory`, the rows that damping remembers.
    """

    entry: Entry
    progress: Progress
    signals: tuple[Signal, ...] = ()
    ends: tuple[Signal, ...] = ()
    fails: tuple[Signal, ...] = ()
    successors: tuple[Entry, ...] = ()
    firing_ids: tuple[str, ...] | None = None
    firings: Firings | None = None
    answers: Answers | None = None
    memory: pa.Table | None = None
    asks: tuple[str, str] | None = None
    control: int | None = None
    begun_at: int | None = None
    settled_at: int | None = None
    effect: Effect | None = None

    @property
    def state(self) -> str:
        return self.progress.state

    @property
    def died(self) -> list[Signal]:
        """The `fails` of the firings for which the entry, or a part of it, died or was skipped."""
        parts = (e.firing_ids or () for e in self.successors if e.state == "dead")
        dead = set[str]().union(*parts)
        if self.state in ("dead", "skipped"):
            own = self.firing_ids or self.entry.firing_ids
            dead.update(own or (signal.firing_id for signal in self.fails))
        return [signal for signal in self.fails if signal.firing_id in dead]


def ways_past(number: int, fate: str | None) -> tuple[str, str]:
    """The commands that redrive and skip an entry, with the options that they need: `--may-double`
    if its effect may be there already, `--unsealed` if it may not be possible to seal it (G16b)."""
    redrive, skip = f"tidegate redrive {number}", f"tidegate skip {number}"
    if fate == Fate.UNKNOWN.value:
        return f"{redrive} --may-double", f"{skip} --unsealed"
    return (f"{redrive} --may-double" if fate == Fate.PASSED.value else redrive), skip
