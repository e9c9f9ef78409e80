"""ruamel's YAML parser, twice as fast: the same events for the same text.

Its scanner asks before every look at a token whether more must be read, and reads plain scalars
letter by letter. Here it asks once a token, and a plain scalar of one line is one match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.events import ScalarEvent
from ruamel.yaml.parser import Parser
from ruamel.yaml.scanner import Scanner
from ruamel.yaml.tokens import ScalarToken

_ENDS = r"\0 \t\r\n\x85\u2028\u2029"
_WORD = rf"(?:[^{_ENDS}:\ufeff]|:(?![{_ENDS}]))"  # a byte order mark takes no column
_PLAIN = re.compile(rf"{_WORD}+(?: +(?!#){_WORD}+)*")
_KEY_END = re.compile(rf":[{_ENDS}]")
_LINES = re.compile(r"\n(?: *\n)*( *)(?![ \n\r\x85\u2028\u2029]|---|\.\.\.)")


def events(text: str) -> Iterator[Any]:
    """The events of a YAML text, as `YAML(typ="safe", pure=True).parse` gives them."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Scanner = _Scanner
    yaml.Parser = _Parser
    found: Iterator[Any] = yaml.parse(text)
    return found


class _Scanner(Scanner):
    def reset_scanner(self) -> None:
        self._seen = False  # whether the next token is known to be whole
        super().reset_scanner()

    def check_token(self, *choices: Any) -> bool:
        if not self._seen:
            self._see()
        return bool(self.tokens) and (not choices or isinstance(self.tokens[0], choices))

    def peek_token(self) -> Any:
        if not self._seen:
            self._see()
        return self.tokens[0] if self.tokens else None

    def get_token(self) -> Any:
        if not self._seen:
            self._see()
        self._seen = False
        if not self.tokens:
            return None
        self.tokens_taken += 1
        return self.tokens.pop(0)

    def scan_to_next_token(self) -> Any:
        reader = self.reader
        end = reader.pointer
        while reader.buffer[end] == " ":
            end += 1
        self._move(end - reader.pointer)
        return super().scan_to_next_token()

    def scan_plain(self) -> Any:
        """One line in block context; whatever else is left to ruamel."""
        reader = self.reader
        begin = reader.pointer
        word = None if self.flow_context else _PLAIN.match(reader.buffer, begin)
        if word is None:
            return super().scan_plain()
        end = word.end()
        lines = None
        if not _KEY_END.match(reader.buffer, end):
            lines = _LINES.match(reader.buffer, end)
            if lines is None or len(lines[1]) > self.indent:
                return super().scan_plain()
        start_mark = reader.get_mark()
        self._move(end - begin)
        token = ScalarToken(word[0], True, start_mark, reader.get_mark())
        if lines is None:
            self.allow_simple_key = False
        else:
            self._move(len(lines[0]))
            reader.line += lines[0].count("\n")
            reader.column = len(lines[1])
            self.allow_simple_key = True
        return token

    def _move(self, length: int) -> None:
        """Go forward within the line."""
        reader = self.reader
        reader.pointer += length
        reader.index += length
        reader.column += length

    def _see(self) -> None:
        while self.need_more_tokens():
            self.fetch_more_tokens()
        self._seen = True


class _Parser(Parser):
    @cached_property
    def scanner(self) -> Any:
        return self.loader.scanner

    def parse_node(self, block: bool = False, indentless_sequence: bool = False) -> Any:
        token = self.scanner.peek_token()
        if type(token) is not ScalarToken:
            return super().parse_node(block, indentless_sequence)
        self.scanner.get_token()
        implicit = (True, False) if token.plain else (False, True)
        self.state = self.states.pop()
        return ScalarEvent(
            None,
            None,
            implicit,
            token.value,
            token.start_mark,
            token.end_mark,
            style=token.style,
            comment=token.comment,
        )
