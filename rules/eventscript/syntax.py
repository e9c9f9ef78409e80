"""Faults in the text of a script that the grammar refuses, each with its remedy."""

from __future__ import annotations

import re
import unicodedata

from lark.exceptions import UnexpectedInput, UnexpectedToken

from tidegate.rules.expressions.faults import PUNCTUATION, Fault, unclosed
from tidegate.rules.expressions.nodes import Span

_UNITS = "days, hours, minutes, seconds, milliseconds, microseconds"
_SHOWN = PUNCTUATION | {
    "UNIT": f"a unit ({_UNITS})",
    "LBRACE": "{",
    "RBRACE": "}",
    "SEMICOLON": ";",
    "EQUAL": "=",
    "QMARK": "?",
    "VBAR": "|",
    "AMPERSAND": "&",
    "MINUS": "-",
}
_OPERATORS = {"OR", "AND", "EQUALITY", "RELATION", "PLUS", "MINUS", "TIMES"}
_SEQUENCE = {"ANY", "ELAPSE", "WITHIN", "ARRIVE"}
_FORBIDDEN_WORDS = {
    "if": "write condition ? statement : statement",
    "else": "write condition ? statement : statement",
    "groupby": "write group: in type NAME group(expression)",
    "return": "a script only assigns and emits",
}
_DECLARED = re.compile(r"\b(?:long|int|double|float|boolean|string|time|object|var)\s+$")
_BRACKETS = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|[()\[\]{}]", re.DOTALL)


def explain(text: str, error: UnexpectedInput) -> Fault:
    """The fault that stopped the parser, with its remedy."""
    start = error.pos_in_stream or 0
    accepted: set[str] = set(getattr(error, "accepts", None) or getattr(error, "allowed", ()) or ())
    word = ""
    if isinstance(error, UnexpectedToken):
        accepted = set(error.accepts or error.expected)
        word = str(error.token)
        if error.token.type == "$END":
            return _ends_early(text, accepted)
        start = error.token.start_pos
    rest, before = text[start:], text[:start]
    end = start + max(1, len(word))
    said = _withdrawn(before, rest, accepted) or _usual(before, rest, accepted)
    if said is not None:
        message, hint = said
        return Fault(Span(start, end), message, hint)
    if not word:
        return _character(text, start)
    previous = re.search(r"[A-Za-z_]\w*$", before.rstrip())
    if accepted <= {"LPAR"} and previous is not None:
        at = Span(previous.start(), previous.end())
        hint = f"an event is written {previous[0]}(), or {previous[0]}(x) to keep its value in x"
        return Fault(at, f"'(' is missing after {previous[0]!r}", hint)
    if "SEMICOLON" in accepted:
        stop = len(before.rstrip())
        return Fault(Span(stop, stop + 1), "';' is missing", "a statement and a field end with ;")
    hint = f"expected {_expected(accepted)}" if accepted else ""
    return Fault(Span(start, end), f"{word!r} cannot stand here", hint)


def _withdrawn(before: str, rest: str, accepted: set[str]) -> tuple[str, str] | None:
    """Forms that the paper's section 4.3 withdrew (`eventscript.md` 8)."""
    if rest.startswith("=>"):
        hint = "keep the value whole, A(x), and read a field of it: x.attr"
        return "attr=>x is no form of a marker: values are structures", hint
    if rest.startswith("[") and accepted & _SEQUENCE and before.rstrip().endswith(")"):
        hint = "name the values that matter: in double A case {A > 10 ? High : Low}, then High(x)"
        return "a marker takes no condition: events are classified by case", hint
    return None


def _usual(before: str, rest: str, accepted: set[str]) -> tuple[str, str] | None:
    """What people write out of habit."""
    word = re.match(r"[A-Za-z_]\w*", rest)
    if word and word[0] in _FORBIDDEN_WORDS:
        return f"{word[0]!r} is not a word of a script", _FORBIDDEN_WORDS[word[0]]
    if word and _DECLARED.search(before) and re.match(r"\s*[=;]", rest[word.end() :]):
        hint = f"write {word[0]} = ..; in a block: its type is that of what it is assigned first"
        return "a variable is not declared", hint
    statement = re.split(r"[;{}]", before)[-1].strip()
    if habit := re.match(r"(?:if|else)\b", statement):
        return f"{habit[0]!r} is not a word of a script", _FORBIDDEN_WORDS[habit[0]]
    if rest.startswith("${"):
        hint = "name the script in a rulebook that has vars: {x: ..}; ${x} is replaced there"
        return "nothing says what '${..}' stands for", hint
    if rest.startswith("/*"):
        return "this comment is not closed", "write */ behind it"
    if rest[:1] in ("|", "&") and before.endswith(rest[0]):
        return f"{rest[0] * 2!r} joins expressions, not events", f"write {rest[0]} once"
    if rest[:1] in ("|", "&") and "OR" in accepted:
        return f"{rest[0]!r} joins events, not expressions", f"write {rest[0] * 2}"
    if rest.startswith(";") and accepted >= {"QMARK", "EQUAL"}:
        return "an expression alone is no statement", "write variable = expression;"
    if word and "UNIT" in accepted and _in_elapse(before):
        return f"unknown unit {word[0]!r}", f"known: {_UNITS}"
    if rest[:1] in ("|", "&", "-") and accepted & {"VBAR", "AMPERSAND", "MINUS"}:
        message = "|, & and - on one level: which of them comes first is not said"
        return message, "parenthesise: (A() | B()) - C(), or A() | (B() - C())"
    if "DECIMAL" in accepted and re.search(r"\w\s*[-+*/%]$", before) and rest[0] in "=+-;":
        return "a variable is changed by an assignment", "write n = n + 1;"
    if rest.startswith("=") and "OR" in accepted:
        return "'=' assigns; it is no part of an expression", "to compare write =="
    if rest[:1] == "!" and accepted & (_SEQUENCE | {"LBRACE"}) and rest[1:2] != "=":
        return "'!' cannot stand here", "an emission stands in a block: { !> Out(value); }"
    return None


def _in_elapse(before: str) -> bool:
    opened = before.rfind("[")
    return opened > before.rfind("]") and bool(
        re.search(r"\b(?:elapse|within)\s*$", before[:opened])
    )


def _character(text: str, position: int) -> Fault:
    character = text[position]
    at = Span(position, position + 1)
    if character == '"':
        return Fault(at, "this quote is not closed", 'a string ends on its line: "..", \\n, \\"')
    if character == "'":
        return Fault(at, "a string has double quotes", 'write ".."')
    if not character.isascii():
        name = unicodedata.name(character, "no ASCII")
        return Fault(at, f"{character!r} is {name}", "names are of A to Z, digits and _")
    return Fault(at, f"{character!r} cannot stand here")


def _ends_early(text: str, accepted: set[str]) -> Fault:
    stop = len(text.rstrip())
    at = Span(stop, stop + 1)
    opened = unclosed(text, _BRACKETS)
    if opened is not None:
        return Fault(Span(opened, opened + 1), f"{text[opened]!r} is not closed")
    previous = re.search(r"[A-Za-z_]\w*$", text.rstrip())
    if accepted == {"LPAR"} and previous is not None:
        hint = f"write {previous[0]}()"
        return Fault(Span(previous.start(), previous.end()), "'(' is missing", hint)
    if "ANY" in accepted:
        hint = "behind the declarations stands a regular expression over events, such as A()"
        return Fault(at, "the script ends without saying what it waits for", hint)
    return Fault(at, "the script ends early", f"expected {_expected(accepted)}")


def _expected(accepted: set[str]) -> str:
    if "OR" in accepted:
        others = accepted - _OPERATORS - {"DOT", "LSQB", "LPAR"}
        return ", ".join([*_names(others)] or ["an operator"])
    if "DECIMAL" in accepted:
        return "an expression"
    if accepted >= _SEQUENCE:
        return "an event, a block or the end"
    return ", ".join(_names(accepted))


def _names(accepted: set[str]) -> list[str]:
    return sorted(_SHOWN.get(name, name.lower()) for name in accepted)
