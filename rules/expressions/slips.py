"""Words and signs that people write for an operator, a function or a length of time of the
language, each with the text that was probably meant."""

from __future__ import annotations

import re
from dataclasses import dataclass

Said = tuple[str, str] | None  # message and hint

CONDITIONS = (
    "a condition on rows stands in the event's `where:`, one on a firing in the rule's `if:`"
)
LENGTHS = "write 5 min, 30 s, 1h30m, 2 days"
_COUNTED = "so many of one event: any(3, a*), or every(3, a); a number of rows: `if: count(*) >= 3`"

ABSENT = "write not(b)[a, c], or not(b)[a, [5 min]]"
JOINS = "write a ; b (one after the other), a and b (in any order), a or b (one of them)"

_PAUSED = "time that does not count is left out by a script: cookbook 04, the guide's event scripts"

_NOT_OPERATORS = {
    **dict.fromkeys(("followed_by", "followedby", "followed", "before", "next", "seq"), JOINS),
    "after": "what comes first stands first: a ; b",
    "for": "write a then no b for 5 min, or on: {holds: a, until: b, for: 5 min}",
    "in": "write a ; b within 5 min",
    "during": "write a ; b within 5 min, or during(a, b, c): b between a and c",
    **dict.fromkeys(("if", "when", "where", "having", "with"), CONDITIONS),
    **dict.fromkeys(
        ("unless", "except"),
        "write not(b)[a, [5 min]]; if b came before: a without during(b, a, [5 min])",
    ),
    **dict.fromkeys(("paused", "pausing", "excluding"), _PAUSED),
    **dict.fromkeys(("times", "x"), _COUNTED),
}
NOT_FUNCTIONS = {
    **dict.fromkeys(("count", "times", "repeat", "atleast", "at_least"), _COUNTED),
    **dict.fromkeys(
        ("sum", "avg", "min", "max"), "a sum over a firing's rows stands in the rule's `if:`"
    ),
    **dict.fromkeys(("seq", "sequence", "followed_by", "before", "after", "next"), JOINS),
    **dict.fromkeys(("absent", "missing", "none", "no"), "write not(b)[a, [5 min]]"),
    **dict.fromkeys(("window", "timer", "wait"), "write a ; b within 5 min, or a + [5 min]"),
    **dict.fromkeys(("where", "filter", "when", "if"), CONDITIONS),
    "one_of": JOINS,
}
_EDGES = {
    **dict.fromkeys(("begin", "begins", "beginning", "start"), "begin_of"),
    **dict.fromkeys(("end", "ends", "finish"), "end_of"),
}
_INTRODUCTIONS = {"if", "when", "on", "once", "whenever"}
CHANGES = {"insert", "update", "delete", "change", "transaction", "commit"}
_KEYWORD_FORMS = {
    "any": "write any(2, a, b), or any(3, a*)",
    "all": "write all(a, b)",
    "every": 'write every(2, a): each second one; a clock is an event: cron: "*/5 * * * *"',
    "not": "write not(b)[a, c], or not(b)[a, [5 min]]",
    "at": "write at(08:00), or <(08:00:00)*/*/*>",
    "cron": 'write cron("0 17 * * mon-fri")',
}
FORMS = {
    "any": "any(m, a, b) or any(m, a*)",
    "all": "all(a, b)",
    "every": "every(n, a)",
    "not": "not(b)[a, c] or not(b)[a, [5 min]]",
    "A": "A(a, b, c)",
    "A*": "A*(a, b, c)",
    "P": "P(a, [5 min], c)",
    "P*": "P*(a, [5 min], c)",
    "during": "during(a, b, c)",
    "collect": "collect(a, b, c)",
    "ticks": "ticks(a, [5 min], c)",
    "instant": "instant(a)",
    "times": "times(n, b, a, c): the n-th b after a, if no c came by then",
    "relative": "relative(a, b)",
    "prior": "prior(a, b)",
    "choose": "choose(n, a)",
    "fa": "fa(a, b, c): the first b after a, if no c came by then",
    "faAbs": "faAbs(a, b, c): the first b after a, if no c ended by then",
}
_ARROW = re.compile(r"[-=~]+>|>>+|→|⇒")
_OPENED = re.compile(
    r"\b(any|all|every|not|during|collect|ticks|instant|times|relative|prior|choose|fa|faAbs"
    r"|[AP]\s*\*?)\s*(?:\([^()]*\)\s*)?$"
)
_LENGTH = frozenset({"INT", "DEC", "SPAN"})


@dataclass(frozen=True, slots=True)
class Unexpected:
    """The token that did not fit, and the kinds of token that would have."""

    text: str
    kind: str
    word: str
    start: int
    accepted: frozenset[str]

    @property
    def before(self) -> str:
        return self.text[: self.start]

    @property
    def after(self) -> str:
        return self.text[self.start + len(self.word) :]


def arrow(text: str, position: int) -> tuple[int, int] | None:
    """Where an arrow stands that has a character at `position`."""
    for found in _ARROW.finditer(text):
        if found.start() <= position < found.end():
            return found.span()
    return None


def name_before(text: str) -> str:
    """The name at the end of a text; "" if it ends otherwise."""
    found = re.search(r"([A-Za-z_]\w*)\s*$", text)
    return found[1] if found else ""


def _name_behind(text: str) -> str:
    found = re.match(r"\s*([A-Za-z_]\w*)", text)
    return found[1] if found else ""


def joins(text: str, start: int, end: int) -> str:
    """How the events on both sides of a piece of text are joined."""
    a, b = name_before(text[:start]), _name_behind(text[end:])
    if not a or not b:
        return JOINS
    return f"write {a} ; {b} (one after the other), {a} and {b} (in any order), {a} or {b}"


def form(before: str, bracket: int) -> str:
    """The form of the function whose bracket opens at `bracket`; "" where it is of none."""
    found = _OPENED.search(before[:bracket])
    return FORMS.get(re.sub(r"\s", "", found[1]), "") if found else ""


def length(found: Unexpected) -> Said:
    """Something else in place of a length of time."""
    if found.kind == "COLON" and re.search(r"\bat\s*\([\d:\s]*$", found.before):
        return "a time of day has no seconds here", _KEYWORD_FORMS["at"]
    if found.kind == "COLON" and re.search(r"\d\s*$", found.before):
        return "a length of time is no clock time", f"{LENGTHS}, or (hh:mm:ss)mm/dd/yy"
    if found.kind == "COMMA" and re.search(r"\d$", found.before) and re.match(r"\d", found.after):
        before, after = (re.search(r"\d+$", found.before), re.match(r"\d+", found.after))
        hint = f"write {before and before[0]}.{after and after[0]}"
        return "a number has a point, not a comma", hint
    if not found.accepted >= _LENGTH or found.kind == "$END":
        return None
    if found.kind in ("LSQB", "LPAR"):
        return f"{found.word!r} cannot stand here", "within takes no brackets: a within 5 min"
    return f"{found.word!r} is not a length of time", LENGTHS


def added(found: Unexpected) -> Said:
    """`a + 5 min` for `a + [5 min]`, `a ; 5 min` for `a ; [5 min]`, `3 a` for `any(3, a*)`."""
    if found.kind not in ("INT", "DEC") or not found.accepted & {"LSQB", "NAME"}:
        return None
    given = re.match(r"[\d.]+\s*[A-Za-z]*", found.text[found.start :])
    amount = given[0].strip() if given else found.word
    named = re.match(r"\s*(?:x\s+|\*\s*)?([A-Za-z_]\w*)", found.after)
    timed = re.match(
        r"\s*(?:us|ms|s|m|h|d|w|sec|min|hour|day|week|month|year)[a-z]*\b", found.after
    )
    message = f"{found.word!r} is not an event"
    if named and not timed:
        return message, f"so many of one event: any({found.word}, {named[1]}*)"
    shown = amount if timed else f"{found.word} s"
    left = re.search(r"([A-Za-z_]\w*)\s*(\+|;)\s*$", found.before)
    joined = f"{left[1]} {left[2]} " if left else ""
    return message, f"a length of time stands in brackets: {joined}[{shown}]"


def joined(found: Unexpected) -> Said:
    """A comma between events, and words that are operators elsewhere."""
    if found.kind == "COMMA":
        return "',' joins no events", joins(found.text, found.start, found.start + 1)
    if found.kind in ("NAME", "_FOR") and "_WITHIN" in found.accepted:
        hint = _NOT_OPERATORS.get(found.word.lower())
        return (f"{found.word!r} is not an operator", hint) if hint else None
    if found.kind == "NAME" and found.before.rstrip().endswith("+") and "LSQB" in found.accepted:
        return "a plus sign adds a length of time: a + [5 min]", JOINS
    return None


def before_event(found: Unexpected) -> Said:
    """Two names side by side, one of which is no event: `begin e` for `begin_of e`, `e as x`,
    `when e`, `insert t`."""
    if found.kind != "NAME" or "_WITHIN" not in found.accepted:
        return None
    before, word, after = name_before(found.before), found.word, _name_behind(found.after)
    if edge_of := _EDGES.get(before.lower()):
        named = (after or "e") if word == "of" else word
        return f"{before!r} is not an operator", f"write {edge_of} {named}"
    if word.lower() == "but":
        rest = re.match(r"\s*(?:(?:not|no|without)\s+)?([A-Za-z_]\w*)", found.after)
        absent = rest[1] if rest else "c"
        hint = f"write {before} without {absent}; for some time: not({absent})[{before}, [5 min]]"
        return "'but' is not an operator", hint
    if word.lower() == "as" and after:
        hint = f"a label stands before what it names: {after}:({before})"
        return "'as' is not an operator", hint
    if before.lower() == "no":
        hint = f"write a then no {word} for 5 min, or a without {word}"
        return "'no' is not an operator", hint
    if before.lower() in _INTRODUCTIONS:
        return f"{before!r} is not an operator", f"leave {before} out: on: names the event itself"
    if before.lower() in CHANGES:
        hint = f"name it, under events: {declared(before.lower(), word)}"
        return f"{before!r} is no event by itself", hint
    return None


def declared(change: str, table: str) -> str:
    """How an event type is declared that is a change of a table."""
    return f"{{{table}_{change}: {{on: {change}, table: {table}}}}}"


def absence(found: Unexpected) -> str:
    """The hint for `a ; not b within 1 day` and `.. not(b) ..`: `not(b)[a, [1 day]]`."""
    first = re.search(r"([A-Za-z_]\w*)\s*(?:;|then|and|&)\s*not\b[^;]*$", found.before)
    named = re.search(r"\bnot\s*\(\s*(\w[^()]*?)\s*\)\s*$", found.before)
    rest = found.word + found.after if named else found.after
    length = re.match(r"\s*within\s+([\w. ]*\w)\s*$", rest)
    opener, absent = first[1] if first else "a", named[1] if named else found.word
    meant = f"not({absent})[{opener}, [{length[1] if length else '5 min'}]]"
    return f"write {meant}" if length else f"write {meant}, or not({absent})[{opener}, c]"


def edge(before: str) -> Said:
    """`begin_of`, `end_of` or `failed` without the name that should follow."""
    last = re.search(r"\b(begin_of|end_of|failed)\s*$", before)
    if not last:
        return None
    hint = "an event of your own needs another name"
    if last[1] == "failed":
        return "'failed' is a keyword: failed r is that the action of rule r failed", hint
    return f"{last[1]!r} is a keyword: {last[1]} t, of a commit or a rule's action", hint


def behind_edge(found: Unexpected) -> Said:
    return edge(found.before) if "NAME" in found.accepted and "LPAR" in found.accepted else None


def keyword(found: Unexpected) -> Said:
    """A function's name without its arguments, a comma that is missing, a name in quotes."""
    if found.kind == "STRING" and "NAME" in found.accepted:
        return "a name has no quotes", f"write {found.word[1:-1]}"
    if "NAME" in found.accepted:
        return None
    if found.kind == "NAME" and found.accepted == {"COMMA"}:
        if re.search(r"\]\s*:\s*\w+\s*$", found.before):
            hint = "write [10 s]: 'SELECT ..', or [10 s]: q with samples: {q: SELECT ..} at the top"
            return "SQL of a sample stands in quotes, or under samples:", hint
        every = re.search(r"\bevery\s*\(\s*\d+\s*$", found.before)
        hint = _KEYWORD_FORMS["every" if every else "any"]
        return f"a comma is missing before {found.word!r}", hint
    inside = re.search(r"\b(at|cron)\s*\(\s*$", found.before)
    if inside:
        return f"{found.word!r} cannot stand here", _KEYWORD_FORMS[inside[1]]
    before = re.search(r"\b(any|all|every|at|cron)\s*$", found.before)
    closed = re.search(r"\bnot\s*\([^()]*\)\s*$", found.before)
    if before and found.kind != "LPAR":
        return f"{found.word!r} cannot stand behind {before[1]!r}", _KEYWORD_FORMS[before[1]]
    if closed and found.accepted == {"LSQB"}:
        return "not takes a window", absence(found)
    return None


def lasting(found: Unexpected) -> Said:
    """`a then no b` without the time for which b must be absent."""
    hint = _how_long(found)
    return (f"{found.word!r} cannot stand here", hint) if hint else None


def _how_long(found: Unexpected) -> str:
    if "_FOR" not in found.accepted:
        return ""
    if found.kind in ("_OR", "_AND", "_WITHOUT"):
        return "parenthesise what must be absent: a then no (b or c) for 5 min"
    text = found.text if found.kind == "$END" else found.before
    said = re.search(r"\bno\s*(?:\(.*\)|[A-Za-z_]\w*)\s*$", text, re.DOTALL)
    return f"say for how long: then {said[0].strip() if said else 'no b'} for 5 min"


def ends_early(found: Unexpected) -> str:
    """The hint for an expression that ends early; "" where none is known."""
    if hint := _how_long(found):
        return hint
    if found.accepted >= _LENGTH:
        return LENGTHS
    if found.accepted == {"LSQB"}:
        return _KEYWORD_FORMS["not"]
    last = re.search(r"\b(any|all|every|not|at|cron)\s*$", found.before)
    return _KEYWORD_FORMS[last[1]] if last else ""
