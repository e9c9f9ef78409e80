"""The console's pages as HTML: templates that only write down what they are given.

Values of tables are hostile. Every text goes through `in_line`, which makes control characters
visible, and then through the template's escaping, so that no tag or attribute comes of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup, escape

from tidegate.engine.core.text.json_text import shown
from tidegate.engine.core.text.layout import age_text, bytes_text, counted, pairs_text
from tidegate.engine.core.text.printable import in_line, shortened
from tidegate.engine.core.text.times import local_text

VALUE_MAX = 300
"""Characters of a value in a table: its JSON has all."""
_BAR, _HIGH = 5, 22  # of a bar: its width with its gap, and how high it may be, in pixels
_CODE = re.compile("`([^`]+)`")
_FOLDER = resources.files("tidegate.connectors.http.console").joinpath("templates")


@cache
def environment() -> Environment:
    """The templates, with their filters."""
    files = [file for file in _FOLDER.iterdir() if file.name.endswith(".html")]
    texts = {file.name: file.read_text("utf-8") for file in files}
    made = Environment(
        loader=DictLoader(texts),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=inert,
    )
    made.filters |= {
        "age": lambda seconds: "unknown" if seconds is None else age_text(seconds),
        "bytes": bytes_text,
        "number": lambda number: "–" if number is None else f"{number:,}",
        "counted": counted,
        "pairs": lambda values: shortened(pairs_text(values), VALUE_MAX),
        "value": lambda value: shortened(shown(value), VALUE_MAX),
        "when": when,
        "path": lambda text: quote(text, safe=""),
        "coded": coded,
        "as_fields": lambda key: {f"key.{name}": text for name, text in key.items()},
        "drawn": Markup,  # of our own code, which has made its texts inert
        "bars": bars,
    }
    made.globals |= {"linked": linked}
    return made


def inert(value: Any) -> Any:
    """A value as it is written into a page. Control characters are seen."""
    if value is None:
        return ""
    return value if isinstance(value, Markup) else in_line(str(value))


def when(instant: str | None, zone: str = "UTC") -> Markup:
    """An instant of the store in the rulebook's zone, to the second. The page's script writes the
    viewer's time before it."""
    if instant is None:
        return Markup("–")
    day, _, clock = local_text(instant, zone).partition("T")
    local = f"{day} {clock[:8]}"
    form = Markup('<time datetime="{}" data-zone="{}" data-local="{}">{} <small>{}</small></time>')
    return form.format(*map(in_line, (instant, zone, local, local, zone)))


def linked(path: str, given: Mapping[str, Any], **changes: Any) -> str:
    """The address of a page with its filters, some of them changed; None: without it."""
    chosen = {**given, **changes}
    query = urlencode({name: value for name, value in chosen.items() if value not in (None, "")})
    return f"{path}?{query}" if query else path


def coded(sentence: str) -> Markup:
    """A sentence in which what stands in backticks is code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(in_line(sentence)))))  # noqa: S704, escaped


def bars(counts: Sequence[float], unit: str) -> Markup:
    """A bar for each count, from left to right, the highest as high as the picture; an image that
    says the most and the last."""
    most = max([1, *counts])
    width = len(counts) * _BAR
    first = f"at most {max(counts, default=0):,}{unit}"
    said = f"{first}, {counts[-1]:,}{unit} in the last" if counts else "nothing"
    head = Markup('<svg class="bars" width="{}" height="{}" role="img" aria-label="{}">')
    parts = [head.format(width, _HIGH + 1, said)]
    bar = Markup('<rect x="{}" y="{:.1f}" width="{}" height="{:.1f}"/>')
    for number, count in enumerate(counts):
        high = 0 if not count else max(1.5, _HIGH * count / most)
        parts.append(bar.format(number * _BAR, _HIGH - high, _BAR - 1, high))
    line = Markup('<line x1="0" y1="{0}.5" x2="{1}" y2="{0}.5"/></svg>')
    return Markup("").join([*parts, line.format(_HIGH, width)])
