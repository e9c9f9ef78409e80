"""All pages of the site, by their place in it."""

from __future__ import annotations

from pathlib import Path

from docs.site.generated import COOKBOOK, ROOT, commands, cookbook, settings
from docs.site.links import clauses, for_the_site
from docs.site.pictures import illustrated

# Pages that stand beside `docs/`: for who looks at the repository first
BESIDE = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
}


def sources() -> dict[str, str]:
    """The page of each file that is one."""
    texts = sorted((ROOT / "docs").glob("*.md"))
    return BESIDE | {f"docs/{file.name}": file.name for file in texts}


def pages() -> dict[str, str]:
    """The text of each page. A link to what is no page has become plain text."""
    files = sources()
    made = cookbook()
    stands = clauses({page: _read(file) for file, page in files.items()})
    reached = files | {"docs/settings.md": "settings.md", "docs/commands.md": "commands.md"}
    reached |= {_origin(place): place for place in made}
    texts = {file: (page, _read(file)) for file, page in files.items()}
    texts["docs/settings.md"] = ("settings.md", settings())
    texts["docs/commands.md"] = ("commands.md", commands())
    texts |= {_origin(place): (place, text) for place, text in made.items()}
    return {
        page: for_the_site(text, file, page, reached, stands)
        for file, (page, text) in texts.items()
    }


def write(folder: Path) -> None:
    """Lay all pages, pictures and assets into an empty folder."""
    for place, text in pages().items():
        with_pictures, drawn = illustrated(place, text)
        _put(folder / place, with_pictures.encode())
        for file, picture in drawn.items():
            _put(folder / file, picture.encode())
    shown = ROOT / "docs" / "pictures"
    for source in (*shown.glob("*.svg"), *shown.glob("*.webp")):
        _put(folder / "pictures" / source.name, source.read_bytes())
    for source in (ROOT / "docs" / "site" / "assets").iterdir():
        _put(folder / "assets" / source.name, source.read_bytes())


def _origin(place: str) -> str:
    """The file that a page of the cookbook is made of."""
    name = Path(place).name
    return f"{COOKBOOK}/{'README.md' if name == 'index.md' else name.replace('.md', '.yaml')}"


def _put(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def _read(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")
