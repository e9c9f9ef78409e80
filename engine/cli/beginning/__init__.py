"""`tidegate init`: a first rulebook with tests that pass, and what an editor needs to complete
them."""

from __future__ import annotations

from pathlib import Path

from tidegate.engine.replay.cases.form import FILE as TESTS
from tidegate.rules.errors import InputError, Problem, word_place
from tidegate.rules.form.form import FILE as RULEBOOKS

_FOLDER = Path(__file__).parent
WRITTEN = {
    "rulebook.yaml": _FOLDER / "rulebook.yaml",
    "rulebook.test.yaml": _FOLDER / "rulebook.test.yaml",
    "README.md": _FOLDER / "README.md",
    ".vscode/settings.json": _FOLDER / "settings.json",
    ".vscode/rulebook.schema.json": RULEBOOKS,
    ".vscode/test.schema.json": TESTS,
}
"""What is written, and what it is a copy of."""


def begin(folder: Path) -> list[Path]:
    """Write a first rulebook and all that belongs to it; returns the files. Raises InputError if
    one of them is there already: then nothing is written."""
    files = {folder / name: source for name, source in WRITTEN.items()}
    there = [name for name in WRITTEN if (folder / name).exists()]
    if there:
        message = f"files are there that are not overwritten: {', '.join(there)}"
        hint = "name another folder: tidegate init DIR"
        raise InputError([Problem("exists", message, word_place(str(folder)), hint)])
    try:
        for file, source in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(source.read_bytes())
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise InputError([Problem("unwritable", message, word_place(str(folder)))]) from error
    return [*files]
