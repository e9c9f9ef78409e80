"""A page as a browser's parser sees it, by the standard library: tags, attributes, texts."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser

_VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Example: `Page("<p class=a>x</p>")` has the tag `("p", {"class": "a"})`, and `text("p")` is
    `x`."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.every_text: list[str] = []
        self._open: list[int] = []
        self.feed(text)
        self.close()
        assert not self._open, [self.tags[number] for number in self._open]

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), attrs
        self.tags.append((tag, dict(attrs)))
        self.every_text.append("")
        if tag not in _VOID:
            self._open.append(len(self.tags) - 1)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.every_text.append("")

    def handle_endtag(self, tag: str) -> None:
        number = self._open.pop()
        assert self.tags[number][0] == tag, (self.tags[number], tag)

    def handle_data(self, text: str) -> None:
        for number in self._open:
            self.every_text[number] += text

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        """Those of each element with this tag."""
        return [attributes for name, attributes in self.tags if name == tag]

    def texts(self, tag: str, **wanted: str) -> list[str]:
        """The text inside of each element with this tag and these attributes."""
        return [
            text
            for (name, attributes), text in zip(self.tags, self.every_text, strict=True)
            if name == tag and wanted.items() <= attributes.items()
        ]

    def text(self, tag: str, **wanted: str) -> str:
        """The text of the first."""
        return self.texts(tag, **wanted)[0]

    @property
    def scripts(self) -> list[str]:
        """What is run: scripts that are not data."""
        every = zip(self.tags, self.every_text, strict=True)
        return [text for (name, own), text in every if name == "script" and "type" not in own]
