"""Faults in the text of an event expression, each with its remedy."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from lark.exceptions import UnexpectedInput, UnexpectedToken

from tidegate.rules.errors import nearest
from tidegate.rules.expressions import slips
from tidegate.rules.expressions.durations import unit_hint
from tidegate.rules.expressions.nodes import Span
from tidegate.rules.expressions.slips import Said, Unexpected

EXCERPT_WIDTH = 90

EMPTY = "name what the rule waits for: on: placed, or on: placed ; paid within 5 min"
_OPERATORS = ("within", "without", "and", "or", "then")
_FUNCTIONS = (
    *("any", "all", "every", "not", "cron"),
    *("A", "P", "during", "collect", "ticks"),
    *("instant", "times", "relative", "prior", "choose", "fa", "faAbs"),
)
_WITHOUT = re.compile(r"\"[^\"]*\"|'[^']*'|\bwithout\b|-")
_BRACKETS = re.compile(r"\"[^\"]*\"|'[^']*'|[()\[\]]")
_LOOSER = {"_THEN", "_OR", "_AND", "PLUS", "LSQB"}
PUNCTUATION = {
    "NAME": "a name",
    "INT": "a whole number",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "COMMA": ",",
    "COLON": ":",
    "$END": "the end",
}
"""What tokens of event expressions and of scripts are called in messages."""
_SHOWN = PUNCTUATION | {
    "_WITHIN": "within",
    "_WITHOUT": "without",
    "_OR": "or",
    "_AND": "and",
    "_THEN": ";",
    "_STAR": "*",
    "_FOR": "for",
    "DEC": "a number",
    "UNIT": "a unit",
    "SPAN": "(hh:mm:ss)mm/dd/yy",
    "ISO": "PT5M",
    "HHMM": "HH:MM",
    "CLOCK": "<(hh:mm:ss)mm/dd/yyyy>",
    "STRING": "a quoted text",
    "PLUS": "+",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a text, at the characters of `span`."""

    span: Span
    message: str
    hint: str = ""


def excerpt(text: str, span: Span) -> str:
    """The line of `text` that holds the span's start, and carets under the offending part."""
    begin = text.rfind("\n", 0, span.start) + 1
    end = text.find("\n", begin)
    end = len(text) if end < 0 else end
    first = max(begin, span.start - EXCERPT_WIDTH // 2)
    last = min(end, first + EXCERPT_WIDTH)
    carets = max(min(span.end, last) - span.start, 1)
    line = text[first:last].replace("\t", " ")
    return f"{line}\n{' ' * (span.start - first)}{'^' * carets}"


def explain(text: str, error: UnexpectedInput) -> Fault:
    """What a parse error means to the person who wrote the text."""
    if not isinstance(error, UnexpectedToken):
        return _character(text, error.pos_in_stream or 0)
    token = error.token
    start = token.start_pos or 0
    found = Unexpected(text, token.type, str(token), start, frozenset(error.accepts or ()))
    if found.kind == "$END":
        return _ends_early(found)
    for rule in _RULES:
        said = rule(found)
        if said:
            return Fault(Span(start, start + len(token)), *said)
    hint = f"expected {_expected(found.accepted)}"
    return Fault(Span(start, start + len(token)), f"{found.word!r} cannot stand here", hint)


def _character(text: str, position: int) -> Fault:
    character = text[position]
    span = Span(position, position + 1)
    if span_of_arrow := slips.arrow(text, position):
        span = Span(*span_of_arrow)
        hint = slips.joins(text, span.start, span.end)
        return Fault(span, f"{text[span.start : span.end]!r} is not an operator", hint)
    if character in "\"'":
        hint = "names have no quotes; a cron line and a sample have them on both sides"
        return Fault(span, "this quote is not closed", hint)
    if character == "<" and re.match(r"<\s*\(", text[position:]):
        return Fault(span, "this clock literal is not closed", "write <(hh:mm:ss)mm/dd/yyyy>")
    if character == "!":
        return Fault(span, "'!' is not an operator", slips.ABSENT)
    hint = slips.CONDITIONS if character in "=<>.%/" else ""
    if character == "{":
        hint = "so many of one event: any(3, a*)"
    if not character.isascii():
        name = unicodedata.name(character, "no ASCII")
        hint = f"this is {name}: names are of A to Z, digits and _"
    return Fault(span, f"{character!r} has no meaning in an event expression", hint)


def _ends_early(found: Unexpected) -> Fault:
    stop = len(found.text.rstrip())
    span = Span(stop, stop + 1)
    opened = unclosed(found.text)
    if not found.text.strip():
        return Fault(span, "the event expression is empty", EMPTY)
    if opened is not None and found.accepted & {"RPAR", "RSQB", "COMMA"}:
        span = Span(opened, opened + 1)
        return Fault(span, f"{found.text[opened]!r} is not closed")
    if edge := slips.edge(found.text):
        return Fault(span, *edge)
    hint = slips.ends_early(found) or f"expected {_expected(found.accepted)}"
    return Fault(span, "the event expression ends early", hint)


def _in_absent(found: Unexpected) -> Said:
    """`a ; b without c ; d`, which has two readings: `c ; d` is absent, or d follows the rest."""
    if found.kind != "_THEN" or "_THEN" in found.accepted or "_OR" not in found.accepted:
        return None
    left = found.text[_enclosing(found.text, found.start) : found.start].strip()
    outside = [w for w in _WITHOUT.finditer(left) if unclosed(left[: w.start()]) is None]
    word = [each for each in outside if each[0] in ("without", "-")][-1]
    whole, absent = f"({left}) {found.word} ..", f"({left[word.end() :].strip()} {found.word} ..)"
    if len(left) > EXCERPT_WIDTH:
        whole, absent = f"(..) {found.word} ..", f"(.. {found.word} ..)"
        left = ".. "
    else:
        left = left[: word.start()]
    return (
        f"whether {found.word!r} goes on with what is absent, or follows on all of it, is not said",
        f"parenthesise: {whole}, or {left}{word[0]} {absent}",
    )


def _after_suffix(found: Unexpected) -> Said:
    suffix = found.accepted >= {"_WITHIN", "_WITHOUT"} and "_THEN" not in found.accepted
    if found.kind not in _LOOSER or not suffix:
        return None
    left = found.text[_enclosing(found.text, found.start) : found.start].strip()
    shown = left if len(left) <= 60 else ".."
    return (
        "after a suffix (within, without) only another suffix may follow",
        f"parenthesise: ({shown}) {found.word} ..",
    )


def _unit(found: Unexpected) -> Said:
    if found.kind != "NAME" or not re.search(r"[0-9]\s*$", found.before):
        return None
    if "COMMA" in found.accepted and found.accepted <= {"COMMA"}:
        return None
    if "UNIT" in found.accepted:
        return f"unknown unit {found.word!r}", unit_hint(found.word)
    return "a[i] takes a whole number", "a length of time follows a plus sign: a + [5 min]"


def _operator(found: Unexpected) -> Said:
    word = found.word
    if word in ("&", "|") and found.before.endswith(word):
        return f"'{word * 2}' is not an operator", f"write {word} once"
    if found.kind != "NAME" or "_WITHIN" not in found.accepted:
        return None
    if meant := nearest(word.lower(), _OPERATORS):
        return f"{word!r} is not an operator", f"did you mean {meant!r}?"
    hint = slips.joins(found.text, found.start, found.start)
    return f"an operator is missing before {word!r}", hint


def _function(found: Unexpected) -> Said:
    if found.kind == "NAME" and re.search(r"\b(any|every)\s*\(\s*$", found.before):
        return "a count is missing", "write any(2, a, b), any(2, a*), every(2, a)"
    if counted := re.search(r"\b(times|choose)\s*\(\s*$", found.before):
        return "a count is missing", f"write {slips.FORMS[counted[1]]}"
    if found.kind == "NAME" and re.search(r"\bnot\s*$", found.before):
        return "not takes a window", slips.absence(found)
    name = slips.name_before(found.before)
    if found.kind != "LPAR" or not name or "LPAR" in found.accepted:
        return None
    names = {known.lower(): known for known in _FUNCTIONS if known != "fa"}  # near to any f
    hint = slips.NOT_FUNCTIONS.get(name.lower())
    if hint is None and (meant := nearest(name.lower(), [*names])):
        hint = f"did you mean {names[meant]!r}?"
    known = f"functions: {', '.join(_FUNCTIONS)}; {slips.CONDITIONS}"
    return f"{name!r} is not a function", hint or known


def _star(found: Unexpected) -> Said:
    if found.kind != "_STAR":
        return None
    return (
        "'*' cannot stand here",
        "it stands only in any(m, a*); more than a name in parentheses: any(m, (a or b)*)",
    )


def _bracket(found: Unexpected) -> Said:
    if found.kind == "LSQB":
        return (
            "'[' cannot stand here",
            "[d] stands only last in ; not A A* P P*, as the period of P and P*, and after +",
        )
    if found.kind in ("RPAR", "RSQB") and unclosed(found.before) is None:
        return f"{found.word!r} closes nothing", ""
    if found.kind in ("RPAR", "RSQB") and "COMMA" in found.accepted:
        form = slips.form(found.before, unclosed(found.before) or 0)
        return f"an operand is missing before {found.word!r}", f"write {form}" if form else ""
    return None


def _keyword(found: Unexpected) -> Said:
    if "NAME" in found.accepted and found.kind.startswith("_") and found.word.isidentifier():
        hint = f"{found.word!r} is a keyword and cannot be a name"
        if found.kind == "_WITHIN":
            hint = "write a ; b within 5 min"
        return f"an event is missing before {found.word!r}", hint
    return None


_RULES = (
    slips.behind_edge,
    slips.lasting,
    slips.length,
    slips.added,
    slips.before_event,
    slips.joined,
    _in_absent,
    _after_suffix,
    _unit,
    _operator,
    slips.keyword,
    _function,
    _star,
    _bracket,
    _keyword,
)


def _expected(accepted: frozenset[str]) -> str:
    if "NAME" in accepted and "LPAR" in accepted:
        return "an event expression" + (" or [d]" if "LSQB" in accepted else "")
    return ", ".join(sorted(_SHOWN.get(name, name) for name in accepted))


def unclosed(text: str, brackets: re.Pattern[str] = _BRACKETS) -> int | None:
    """Offset of the innermost bracket that `text` leaves open. `brackets` matches brackets, and
    whole texts and comments, in which a bracket is none."""
    opened = []
    for found in brackets.finditer(text):
        if found[0] in "([{":
            opened.append(found.start())
        elif found[0] in ")]}" and opened:
            opened.pop()
    return opened[-1] if opened else None


def _enclosing(text: str, start: int) -> int:
    """Where the operand begins that `start` follows: after the open bracket or its last comma."""
    depth = 0
    for position in range(start - 1, -1, -1):
        character = text[position]
        depth += (character in ")]") - (character in "([")
        if depth < 0 or (depth == 0 and character == ","):
            return position + 1
    return 0
