"""What `validate` says of files: for people, as JSON lines, as SARIF 2.1.0 (code scanning), or as
GitHub's annotations of a workflow run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from tidegate.engine.cli import help, output
from tidegate.engine.core.keeping import Keeping
from tidegate.engine.core.text.layout import age_text
from tidegate.rules.errors import Place, Problem
from tidegate.rules.model import Rulebook

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found in one file. `book`: the rulebook, if it could be read. `keepings`: for how
    long its tables keep their past, where they were asked."""

    file: Path
    book: Rulebook | None
    problems: Sequence[Problem]
    warnings: Sequence[Problem]
    keepings: Sequence[Keeping] = ()

    @property
    def levels(self) -> list[tuple[str, Problem]]:
        """Each finding with its level: `error`, `warning`."""
        levels = [("warning", each) for each in self.warnings]
        return levels + [("error", each) for each in self.problems]


def tell(verdicts: Sequence[Verdict], form: str) -> None:
    """Print verdicts. `form`: one of `FORMS`."""
    FORMS[form](verdicts)


def _text(verdicts: Sequence[Verdict]) -> None:
    """Errors and warnings with their places, or ok."""
    for verdict in verdicts:
        for level, problem in verdict.levels:
            output.say(f"warning: {problem}" if level == "warning" else str(problem))
        if verdict.book is not None and not verdict.problems:
            output.say(f"{verdict.file}: ok ({_counts(verdict.book)})")
        for keeping in verdict.keepings:
            kept = age_text(keeping.stands_micros / 1e6)
            output.say(f"table {keeping.table} keeps its commits for {kept} ({keeping.limit})")


def _counts(book: Rulebook) -> str:
    """`1 table, 2 events, 3 rules`."""
    found = {"table": len(book.tables), "event": len(book.events), "rule": len(book.rules)}
    if book.scripts:
        found["script"] = len(book.scripts)
    return ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for what, n in found.items())


def _json(verdicts: Sequence[Verdict]) -> None:
    """A line for each file."""
    for verdict in verdicts:
        output.json_line(
            {
                "file": str(verdict.file),
                "ok": not verdict.problems,
                "errors": [_problem(each) for each in verdict.problems],
                "warnings": [_problem(each) for each in verdict.warnings],
                "tables": [
                    {
                        "table": each.table,
                        "stands_seconds": each.stands_micros // 1_000_000,
                        "by": each.limit,
                    }
                    for each in verdict.keepings
                ],
            }
        )


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "code": problem.code,
        "file": problem.place.file,
        **_place(problem.place),
        "message": problem.message,
        "hint": problem.hint,
        "others": [_place(place) for place in problem.others],
    }


def _place(place: Place) -> dict[str, Any]:
    return {"line": place.line, "column": place.column, "path": place.path}


def _sarif(verdicts: Sequence[Verdict]) -> None:
    """One log of one run, which has a result for each finding."""
    found = [one for verdict in verdicts for one in verdict.levels]
    codes = sorted({problem.code for _, problem in found})
    driver = {
        "name": "tidegate",
        "version": version("tidegate"),
        "rules": [_rule(code) for code in codes],
    }
    results = [
        {
            "ruleId": problem.code,
            "ruleIndex": codes.index(problem.code),
            "level": level,
            "message": {"text": _told(problem)},
            "locations": _locations([problem.place]),
            "relatedLocations": _locations(problem.others),
        }
        for level, problem in found
    ]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    log = {"$schema": SARIF, "version": "2.1.0", "runs": [run]}
    output.document(orjson.dumps(log, option=orjson.OPT_INDENT_2).decode() + "\n", as_json=True)


def _rule(code: str) -> dict[str, Any]:
    """What a code means and what to do, for the place that shows the findings."""
    known = help.codes()[code]
    cause, remedy = help.plainly(known.cause), help.plainly(known.remedy)
    return {"id": code, "shortDescription": {"text": cause}, "help": {"text": remedy}}


def _locations(places: Iterable[Place]) -> list[dict[str, Any]]:
    """Where something stands in files. A word of the command line is in none."""
    return [_location(place) for place in places if _in_file(place)]


def _in_file(place: Place) -> bool:
    return bool(place.line) or Path(place.file).is_file()


def _location(place: Place) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.file)}}
    if place.line:
        physical["region"] = {"startLine": place.line, "startColumn": place.column}
    named = {"logicalLocations": [{"fullyQualifiedName": place.path}]} if place.path else {}
    return {"physicalLocation": physical} | named


def _uri(file: str) -> str:
    """A file's URI: relative under the working directory, as code hosts expect it."""
    path = Path(file).resolve()
    here = Path.cwd()
    return quote(path.relative_to(here).as_posix()) if path.is_relative_to(here) else path.as_uri()


def _github(verdicts: Sequence[Verdict]) -> None:
    """A workflow command for each finding: `::error file=b.yaml,line=3,col=5,title=name::..`."""
    for verdict in verdicts:
        for level, problem in verdict.levels:
            place = problem.place
            file = place.file if _in_file(place) else ""
            at = {"file": file, "line": place.line, "col": place.column}
            given = {name: value for name, value in at.items() if value} | {"title": problem.code}
            named = ",".join(f"{name}={_escaped(str(v), ':,')}" for name, v in given.items())
            output.say(f"::{level} {named}::{_escaped(_told(problem))}")


def _escaped(text: str, separators: str = "") -> str:
    """As a workflow command has it: no line ends, and no separators of its own."""
    for sign in "%\r\n" + separators:
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


def _told(problem: Problem) -> str:
    """What is wrong, where in the rulebook, and the remedy on a line of its own."""
    where = f" ({problem.place.path})" if problem.place.path else ""
    return f"{problem.message}{where}" + (f"\n{problem.hint}" if problem.hint else "")


FORMS: dict[str, Callable[[Sequence[Verdict]], None]] = {
    "text": _text,
    "json": _json,
    "sarif": _sarif,
    "github": _github,
}
