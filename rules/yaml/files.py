"""Files of the language: rulebooks and scripts."""

from __future__ import annotations

from tidegate.rules.errors import InputError, Place, Problem, word_place


def read_file(file: str) -> str:
    """The text of a file. Raises InputError."""
    place = word_place(file)
    try:
        with open(file, "rb") as stream:
            content = stream.read()
    except FileNotFoundError:
        raise InputError([Problem("file", "there is no such file", place)]) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError([Problem("file", f"cannot be read: {reason}", place)]) from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        column = error.start - before.rfind(b"\n")
        place = Place(file, before.count(b"\n") + 1, column)
        message = f"byte 0x{content[error.start]:02x} is not UTF-8"
        raise InputError([Problem("file", message, place, "save the file as UTF-8")]) from None
