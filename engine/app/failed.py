"""Why a rulebook could not be started, told to the store that knows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tidegate.engine.store import open_store
from tidegate.engine.store.address import default_store
from tidegate.engine.store.holder import this_holder
from tidegate.rules.errors import EngineError, TidegateError
from tidegate.rules.loader import is_text
from tidegate.rules.model import Rulebook

LEASE_SECONDS = 10


@contextmanager
def told_of_failure(
    rulebook: str | os.PathLike[str] | Rulebook, store: str | None
) -> Iterator[None]:
    """Keeps what is raised here as the cause of the stop, for `status`, where the store has run
    this file before and no engine runs it now."""
    try:
        yield
    except TidegateError as error:
        text = isinstance(rulebook, str) and is_text(rulebook)
        if not (text or isinstance(rulebook, Rulebook)):
            with suppress(EngineError):  # there may be no store yet, or another engine
                file = Path(os.fspath(rulebook)).resolve()
                _keep(store or default_store(file), file, str(error))
        raise


def _keep(url: str, file: Path, cause: str) -> None:
    with open_store(url, create=False) as store:
        for name, kept in store.rulebooks().items():
            if kept.file is not None and Path(kept.file) == file:
                epoch = store.acquire(name, this_holder(), LEASE_SECONDS)
                store.set_stopped(name, epoch, cause)
                store.release(name, epoch)
