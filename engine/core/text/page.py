"""The frame of a page: one HTML file that needs nothing else. It has no network, no style attribute
and no handler attribute, and says so to the browser (its Content-Security-Policy allows its own
style and script by their digests). It is read dark and light, from 390 pixels on.

Values of tables are hostile. In the body they go through `inert`, in data through `data`.

Example: `document("bank", ["<h1>bank</h1>", data("of-bank", {"fired": 3})], script=SCRIPT)`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from typing import Any

import orjson

from tidegate.engine.core.text.json_text import plain
from tidegate.engine.core.text.printable import in_line

COLOURS = 6
"""The classes c0 to c5 have colours that are told apart, also by the colour-blind."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5d6876; --line: #d5dae1;
  --paper: #ffffff; --wash: #f4f6f9; --c0: #0072b2; --c1: #c25100; --c2: #007f5f; --c3: #a3477f;
  --c4: #7a6a00; --c5: #4b50c8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebf0; --soft: #9aa5b4; --line: #3a424e;
  --paper: #14181d; --wash: #1d232a; --c0: #58b4ea; --c1: #ff9b57; --c2: #3fcf9f; --c3: #e48cc4;
  --c4: #d9c84a; --c5: #9da2ff; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 2rem auto; max-width: 72rem; padding: 0 1.5rem; }
code { background: var(--wash); padding: .1rem .35rem; border-radius: 4px; }
h1 { font-size: 1.5rem; margin-bottom: .3rem; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; }
.note, .legend, figcaption span { color: var(--soft); }
.warning { border-left: 4px solid var(--c1); padding: .2rem .8rem; background: var(--wash); }
svg { display: block; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .small { fill: var(--soft); font-size: 11px; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); }
.c3 { color: var(--c3); } .c4 { color: var(--c4); } .c5 { color: var(--c5); }
table { border-collapse: collapse; width: 100%; } .wide { overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .35rem .6rem; text-align: left;
  vertical-align: top; }
th { background: var(--wash); } td div + div { margin-top: .4rem; }
"""
_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def document(title: str, body: Iterable[str], *, style: str = "", script: str = "") -> str:
    """A whole page. `style` comes after that of all pages; `script` runs at the end."""
    style, run = _STYLE + style, f"<script>{script}</script>" if script else ""
    allowed = f"style-src {_digest(style)}" + (f"; script-src {_digest(script)}" if script else "")
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{inert(title)}</title><style>{style}</style></head><body><main>"
    )
    return "\n".join([head, *body, f"</main>{run}</body></html>\n"])


def inert(text: str) -> str:
    """A text of others for the body: no tag, attribute or entity comes of it. Control characters,
    and those that turn the writing direction, are escapes, as on a terminal."""
    return escape(in_line(text))


def data(name: str, value: Any) -> str:
    """A value for the page's script, as JSON in an element with this id. No text in it ends the
    element or begins another."""
    text = orjson.dumps(value, default=plain).decode().translate(_UNSAFE)
    return f'<script type="application/json" id="{escape(name)}">{text}</script>'


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
