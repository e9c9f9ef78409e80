"""Results of cases for people, for programs and for CI (JUnit)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from tidegate.engine.core.text.json_text import shown
from tidegate.engine.core.text.layout import columns, counted, pairs_text, wrapped
from tidegate.engine.replay.cases.differences import FIRED, Difference, Mismatch
from tidegate.engine.replay.cases.driver import CaseResult
from tidegate.engine.replay.cases.runner import Refused

Result = CaseResult | Refused
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HIDDEN = ("firing_id", "start", "fired_at", "depth")
"""Fields of a firing that are not shown where nobody has asked for them."""
_INDENT = "    "


def case_line(result: CaseResult) -> str:
    """`  passed  four withdrawals; not listed, but fired: tell (1)`: a line below its file's."""
    line = f"  {result.outcome:<7} {result.name}"
    if result.mode == "spark":
        line += f" (spark: {result.reason})" if result.reason else " (spark)"
    if result.unlisted:
        others = ", ".join(f"{rule} ({count:,})" for rule, count in result.unlisted.items())
        line += f"; not listed, but fired: {others}"
    return line


def failure_lines(result: CaseResult, width: int) -> Iterator[str]:
    """A failure in full."""
    yield ""
    yield f"FAILED {result.place.file}:{result.place.line}: {result.name}"
    if result.error:
        yield from (_INDENT + line for line in result.error.splitlines())
    for mismatch in result.mismatches:
        yield from _mismatch_lines(mismatch, width)
    for one, times in Counter(result.beside).items():
        yield from wrapped(one + (f" ({times:,} times)" if times > 1 else ""), width, _INDENT)


def _mismatch_lines(mismatch: Mismatch, width: int) -> Iterator[str]:
    what = "differs" if mismatch.expected is not None and mismatch.got is not None else ""
    if mismatch.expected is not None and mismatch.got is None:
        what = "is missing"
    elif mismatch.expected is None and mismatch.got is not None:
        what = "was not expected"
    yield f"{_INDENT}{mismatch.place.file}:{mismatch.place.line}: {mismatch.of} {what}".rstrip()
    if mismatch.expected is None and mismatch.got is None:
        for one in mismatch.differences:
            said = f"expected {shown(one.expected)}, got {shown(one.got)}"
            yield from wrapped(said, width, _INDENT * 2)
        return
    other = mismatch.got if mismatch.nearest is None else mismatch.nearest
    names = ("", "expected", "got" if mismatch.nearest is None else "nearest")
    rows = _rows(mismatch, other)
    shrink = {1: 16, 2: 16}
    lines = columns(names, rows, width - 8, left=3, folded=shrink) if rows else ()
    yield from (_INDENT * 2 + line for line in lines)
    if mismatch.why:
        yield from wrapped(f"why not: {mismatch.why}", width, _INDENT * 2)


def _rows(
    mismatch: Mismatch, other: Mapping[str, Any] | None
) -> list[tuple[str, str | None, str | None]]:
    """Field by field; those that differ have a mark."""
    wanted = mismatch.expected or {}
    wrong = {one.path.rpartition(".")[2]: one for one in mismatch.differences}
    found = other or {}
    names = [*wanted, *(name for name in wrong if name in found and name not in wanted)]
    if not wanted:
        names = [name for name in found if name not in _HIDDEN and found[name] is not None]
    elif mismatch.nearest is not None:
        held_back = {
            "condition": found.get("condition") not in FIRED,
            "damped": found.get("damped"),
        }
        names += [name for name, held in held_back.items() if held and name not in names]
    rows = []
    for name in names:
        given, got = wanted.get(name), found.get(name)
        if name in wrong and wanted:
            given, got = wrong[name].expected, wrong[name].got
        if name == "constituents" and isinstance(got, list):
            got = len(got) if isinstance(given, int) else got
        mark = "! " if name in wrong and mismatch.got is not None else "  "
        expected = _cell(given) if name in wanted or name in wrong else None
        rows.append((mark + name, expected, _cell(got) if name in found else None))
    return rows


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        return pairs_text(value)
    if isinstance(value, list):
        return "; ".join(map(_cell, value)) or "none"
    return "null" if value is None else shown(value)


def count_line(results: Sequence[Result], seconds: float) -> str:
    """`12 passed, 1 failed, 2 skipped in 0.4 s`."""
    counts = Counter(one.outcome for one in results if isinstance(one, CaseResult))
    refused = sum(isinstance(one, Refused) for one in results)
    said = [f"{counts['passed']:,} passed"]
    said += [
        f"{counts[outcome]:,} {outcome}" for outcome in ("failed", "skipped") if counts[outcome]
    ]
    said += [f"{counted(refused, 'file')} refused"] if refused else []
    return f"{', '.join(said)} in {seconds:.1f} s"


def as_json(result: CaseResult) -> dict[str, Any]:
    """One line of `--json`."""
    return {
        "file": str(result.file),
        "name": result.name,
        "outcome": result.outcome,
        "mode": result.mode,
        "seconds": round(result.seconds, 6),
        "differences": [
            {"path": one.path, "expected": one.expected, "got": one.got}
            for one in _all_differences(result)
        ],
    }


def _all_differences(result: CaseResult) -> Iterable[Difference]:
    if result.error:
        yield Difference("error", None, result.error)
    yield from result.differences


def junit(results: Sequence[Result]) -> bytes:
    """The results as JUnit XML: a suite a file."""
    top = Element("testsuites")
    by_file: dict[str, list[Result]] = {}
    for result in results:
        by_file.setdefault(str(result.file), []).append(result)
    for file, found in by_file.items():
        cases = [one for one in found if isinstance(one, CaseResult)]
        counts = Counter(one.outcome for one in cases)
        suite = SubElement(
            top,
            "testsuite",
            name=_clean(file),
            tests=str(len(found)),
            failures=str(counts["failed"]),
            errors=str(len(found) - len(cases)),
            skipped=str(counts["skipped"]),
            time=f"{sum(one.seconds for one in cases):.6f}",
        )
        for one in found:
            _junit_case(suite, file, one)
    indent(top)
    text: bytes = tostring(top, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _junit_case(suite: Element, file: str, one: Result) -> None:
    if isinstance(one, Refused):
        case = SubElement(suite, "testcase", classname=_clean(file), name="(the file)", time="0")
        SubElement(case, "error", message="refused").text = _clean(str(one.error))
        return
    case = SubElement(
        suite,
        "testcase",
        classname=_clean(file),
        name=_clean(one.name),
        time=f"{one.seconds:.6f}",
    )
    if one.outcome == "failed":
        lines = [*failure_lines(one, 100)][2:]
        failure = SubElement(case, "failure", message=_clean(lines[0].strip() if lines else ""))
        failure.text = _clean("\n".join(lines))
    elif one.outcome == "skipped":
        SubElement(case, "skipped", message=_clean(f"needs Spark: {one.reason}"))


def _clean(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return _UNWRITABLE.sub("\ufffd", text)
