"""Kinds of scalars: texts, numbers, flags and choices."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tidegate.rules.yaml.json_schema import Schema
from tidegate.rules.yaml.kinds import Kind, Report, Words, hint_for, wrong_shape
from tidegate.rules.yaml.misreadings import identifier_hint
from tidegate.rules.yaml.reader import Node, Scalar


def scalar(
    what: str, schema: Schema, convert: Callable[[Scalar, Report], Any], like: str = ""
) -> Kind:
    """A scalar. `convert` may raise `ValueError` with `message; hint` for the user."""

    def read(node: Node, report: Report) -> Any:
        if not isinstance(node, Scalar):
            return wrong_shape(what, like, node, report)
        try:
            return convert(node, report)
        except ValueError as error:
            message, _, hint = str(error).partition("; ")
            return report.add("value", message, node.place, hint)

    return Kind(read, schema, like)


def text(what: str = "a text", pattern: str = "", like: str = "") -> Kind:
    """A text that is not empty; of a `pattern` if given. Plain numbers are not text."""
    written = f"write {like}" if like else ""

    def convert(node: Scalar, report: Report) -> Any:
        value = node.value
        if not isinstance(value, str):
            shown = "nothing" if value is None else node.text
            hint = written if value is None else f'quote it: "{node.text}"'
            return report.add("type", f"expected {what}, found {shown}", node.place, hint)
        if not value.strip():
            return report.add("value", f"expected {what}, found an empty text", node.place)
        if pattern and not re.fullmatch(pattern, value):
            hint = written or (identifier_hint(value) if what.endswith("name") else "")
            return report.add("value", f"{value!r} is not {what}", node.place, hint)
        return value

    form: Schema = {"type": "string", "minLength": 1}
    if pattern:
        form["pattern"] = f"^(?:{pattern})$"
    return scalar(what, form, convert, like)


def parsed(what: str, convert: Callable[[str], Any], like: str = "") -> Kind:
    """A scalar whose text `convert` reads (plain numbers too); it raises `ValueError`."""
    schema: Schema = {"type": ["string", "number"]}

    def read(node: Scalar, report: Report) -> Any:
        if not node.text.strip():
            hint = f"write {like}" if like else ""
            return report.add("type", f"expected {what}, found nothing", node.place, hint)
        return convert(node.text)

    return scalar(what, schema, read, like)


def integer(least: int | None = None, most: int | None = None) -> Kind:
    """A whole number in [least, most]."""
    schema: Schema = {"type": "integer"}
    if least is not None:
        schema["minimum"] = least
    if most is not None:
        schema["maximum"] = most

    def convert(node: Scalar, report: Report) -> Any:
        value = node.value
        if not isinstance(value, int) or isinstance(value, bool):
            message = f"expected a whole number, found {node.text!r}"
            return report.add("type", message, node.place, "write digits alone, as in 10")
        if (least is not None and value < least) or (most is not None and value > most):
            above = f"at least {least}" if most is None else f"from {least} to {most}"
            hint = f"write {least}" + (", or more" if most is None else f" to {most}")
            return report.add("value", f"{value} must be {above}", node.place, hint)
        return value

    return scalar("a whole number", schema, convert)


_MEANS = {"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"}


def _flag(node: Scalar, report: Report) -> Any:
    if isinstance(node.value, bool):
        return node.value
    if node.style and node.text in ("true", "false"):
        message = f"expected true or false, found the text {node.text!r}"
        return report.add("type", message, node.place, f"take off the quotes: {node.text}")
    hint = f"write {_MEANS.get(node.text.lower(), 'true, or false')}"
    return report.add("type", f"expected true or false, found {node.text!r}", node.place, hint)


FLAG = scalar("true or false", {"type": "boolean"}, _flag)


def choice(*names: str, words: Words | None = None, like: str = "") -> Kind:
    """One of `names`. `words` maps other words to the name that was meant; `like` is an example."""
    names = tuple(str(name) for name in names)

    def convert(node: Scalar, report: Report) -> Any:
        if node.text in names:
            return node.text
        hint = f"write {like}" if like and re.search(r"[,|/]| or ", node.text) else ""
        hint = hint or hint_for(node.text, names, words, report)
        hint = f"{hint}; or {like}" if like and hint.startswith("known") else hint
        return report.add(
            "value", f"{node.text!r} is not one of {', '.join(names)}", node.place, hint
        )

    values = [*names, *([None] if "null" in names else [])]
    return scalar(f"one of {', '.join(names)}", {"enum": values}, convert, like or names[0])
