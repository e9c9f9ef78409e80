"""Conditions that cannot stop the engine: if Spark cannot answer, the firings are dead (G13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.engine.core.ports import Conditions, check_going_on
from tidegate.engine.core.suspect import STRIKES_MAX, Suspect, text_digest
from tidegate.engine.core.values import Answers, Failure, Question
from tidegate.engine.quarantine.quarantine import Quarantine


@dataclass(frozen=True, slots=True)
class WatchedConditions:
    """Implements `engine.core.ports.Conditions` by another one.

    Expressions without strikes are asked together. Suspects and queries are asked alone. If those
    asked together overrun their deadline, each gets a strike and is asked alone. Raises
    StoppedError before the next question if the engine was asked to stop.
    """

    conditions: Conditions
    quarantine: Quarantine
    stopped: Callable[[], bool] = lambda: False

    def hold(self, questions: Sequence[Question]) -> Answers:
        together: list[Question] = []
        alone: list[Question] = []
        for question in questions:
            suspected = self.quarantine.of(_suspect(question)).suspected
            (alone if question.condition.query or suspected else together).append(question)
        said = self._together(together) if together else Answers()
        for question in alone:
            said = said.also(self._alone(question))
        return said

    def sample(self, text: str, pinned: Mapping[str, int]) -> pa.Scalar | Failure | None:
        item = ", ".join(f"{table} version {v}" for table, v in sorted(pinned.items()))
        digest = text_digest(text)
        suspect = Suspect("sample", digest, digest, item, told=f"the sample `{text}`")
        while (refused := self._refused(suspect)) is None:
            check_going_on(self.stopped)
            with self.quarantine.run(suspect):
                found = self.conditions.sample(text, pinned)
            if not (isinstance(found, Failure) and found.overrun):
                self.quarantine.forgive(suspect)
                return found
            self.quarantine.overran([suspect], found.error)
        return refused

    def _together(self, questions: Sequence[Question]) -> Answers:
        check_going_on(self.stopped)
        suspects = [*dict.fromkeys(map(_suspect, questions))]
        with self.quarantine.run(*suspects):
            said = self.conditions.hold(questions)
        late = {asked: why for asked, why in said.failed.items() if why.overrun}
        if not late:
            return said
        left = [q for q in questions if q.asked in late]
        struck = [*dict.fromkeys(map(_suspect, left))]
        self.quarantine.overran(struck, next(iter(late.values())).error)
        failed = {asked: why for asked, why in said.failed.items() if asked not in late}
        said = Answers(said.held, failed, said.fires, said.rearms)
        for question in left:
            said = said.also(self._alone(question))
        return said

    def _alone(self, question: Question) -> Answers:
        """Ask a question alone, until it has an answer or is refused."""
        suspect = _suspect(question)
        while (refused := self._refused(suspect)) is None:
            check_going_on(self.stopped)
            with self.quarantine.run(suspect):
                said = self.conditions.hold([question])
            why = said.failed.get(question.asked)
            if why is None or not why.overrun:
                self.quarantine.forgive(suspect)
                return said
            self.quarantine.overran([suspect], why.error)
        return Answers(failed={question.asked: refused})

    def _refused(self, suspect: Suspect) -> Failure | None:
        why = self.quarantine.refuses(suspect)
        if why is None:
            return None
        return Failure(why, lasting=True, attempts=STRIKES_MAX, quarantined=True)


def _suspect(question: Question) -> Suspect:
    """A question as a suspect. Its item is its entry, or the first of its firings."""
    item = str(question.entry or question.firing_ids[0].as_py())
    told = f"the condition of rule {question.rule} (`{question.condition.place.path}`)"
    digest = text_digest(question.condition.text)
    return Suspect("condition", question.rule, digest, item, told=told)
