"""The outbox: entries, the outcomes of attempts; what operators ask for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

import pyarrow as pa

from tidegate.engine.core.statement import SqlStatement, Statement
from tidegate.engine.core.values import Answers, Firings, Signal

S = TypeVar("S", bound=Statement)


@dataclass(frozen=True, slots=True)
class Control:
    """What an operator asked for, effective at the next plan (G24).

    `reset`: the cursor of table `subject` is to be set so that `version` is the next one to be
    read, None: after the head (G10). `enable`: rule `subject` is no longer parked, or disabled
    (G13); `disable`: it stops; option `purge`: its open entries are dead, sealed. `skip`:
    entry `subject` is sealed and passed over; option `unsealed`: though it cannot be sealed.
    `redrive`: it is sealed, and a new entry stands in its place (G18); option `may-double`: though
    its fate is not known, or another history passed it. `asked_at`: when, by the store's clock.
    """

    id: int
    kind: str
    subject: str
    version: int | None = None
    option: str | None = None
    asked_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an entry has come. `state`: `pending` (not tried yet, or waiting for a retry), `held`
    (it has used up its attempts, or its `fate` is passed or unknown; it holds the queue of its
    rule), `done`, `dead`, `skipped` (passed over by an operator), `redriven` (another entry stands
    in its place). `error`, of the last attempt, holds no values of the user's tables, `details`
    may. `next_attempt_at`: when it is due again after a failure, microseconds."""

    state: str = "pending"
    attempts: int = 0
    error: str | None = None
    details: str | None = None
    fate: str | None = None
    next_attempt_at: int = 0

    def finished(self, state: str, error: str | None = None) -> Progress:
        """That of an entry that is not tried again."""
        return Progress(state=state, attempts=self.attempts, error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """When an entry may run. `order` is its position in the bucket's order of actions (G15),
    `place` that in the queue of its rule: its own number, or that of the entry which it was
    redriven for, or of the condition that made it; of one place, `order` says which is first.

    `stage`: entries of a bucket with a larger one begin after all with a smaller one were tried;
    None for detached ones, which neither wait for others nor are waited for."""

    order: int = 0
    place: int = 0
    stage: int | None = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One outbox entry: one statement for one set of firings, or for one firing (G16).

    `number` is drawn from the store's one increasing sequence when the entry is stored (0 before).
    `firing_ids`: hex ids when the entry is for some of the rule's firings only, None for all held.
    `otherwise_at`: when the rule's alternative is to be done, unless this was done before;
    `alternative`: it is one (G23).

    `app_id`: Delta's txnAppId of its marker, whose txnVersion is `number`. `target_version`: the
    target's latest version before the entry was stored; its effect can only stand after it (G16b).
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
        """As it is stored. One that has no place in its rule's queue gets that of its number."""
        placed = self.placed(self.turn.place or number)
        return replace(placed, number=number, bucket=bucket)

    def placed(self, place: int) -> Entry:
        return replace(self, turn=replace(self.turn, place=place))

    @property
    def queue(self) -> str:
        """Entries of one queue run in order, one at a time: a rule's, those of its alternative, and
        its webhooks, which wait for others' machines."""
        alternative = "/otherwise" if self.alternative else ""
        return f"{self.rule}{alternative}{'/webhook' if self.kind == 'webhook' else ''}"

    @property
    def ways_past(self) -> tuple[str, str]:
        """The commands that redrive and that skip it, with the options without which they are
        refused: where its effect may be there already, or where it may not be sealed (G16b)."""
        redrive, skip = f"tidegate redrive {self.number}", f"tidegate skip {self.number}"
        fate = self.progress.fate
        if fate == Fate.UNKNOWN.value:
            return f"{redrive} --may-double", f"{skip} --unsealed"
        return (f"{redrive} --may-double" if fate == Fate.PASSED.value else redrive), skip

    @property
    def is_action(self) -> bool:
        """Whether it is part of its rule's `do`: no condition, and no alternative."""
        return self.kind != "condition" and not self.alternative

    @property
    def ordered(self) -> bool:
        """Whether others wait for its first attempt: not for a detached entry, nor for one that was
        tried, or stands in the place of another."""
        turn = self.turn
        return turn.stage is not None and not self.progress.attempts and turn.place == self.number

    def same_set(self, other: Entry) -> bool:
        """Whether both are for the same firings of one rule, in the same branch of it."""
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
    """What became of an entry, asked of its target's log (G16b)."""

    EFFECT = "effect"  # a commit names this store and entry
    SEALED = "sealed"  # its seal stands: it can land no more
    ABSENT = "absent"  # its marker is below its number: it has not landed
    PASSED = "passed"  # no commit is this entry's, but its marker is another history's: at or above
    # its number, or below at the number of an entry that is no one of its app id
    UNKNOWN = "unknown"  # the log was cleaned, or the target cannot be read


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one entry: its new `progress`.

    `signals` were raised by it; they are inserted when it is marked done (G22). `successors` are
    stored and numbered in the same transaction: the entry that takes the place of a redriven one,
    or the actions of a condition that was asked again; `firings` are that one's, decided. `control`
    is what is answered by it. `firing_ids`: those that the entry is for from now on, None: as
    before; what became of its others then stands in successors.

    `ends`: the signals of the end of the action, inserted with `done` for the firings of which no
    other statement is left; `fails`: those of its failure, inserted with `dead`. `asks`: the kind
    and subject of a control that is inserted with `done`. `answers`: what was said of the
    firings of a condition, of which some may be damped before it is settled; `memory`: what is to
    be remembered of the others.
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

    @property
    def state(self) -> str:
        return self.progress.state
