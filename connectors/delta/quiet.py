"""What PySpark says on stderr of a Java that has ended: the engine says so itself, in a line."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext


def quieten_deaths(context: SparkContext) -> None:
    """No stack trace of a connection to the context's Java that is cut."""
    logging.getLogger().addFilter(_tells_news)
    server: Any = context._accumulatorServer
    tell = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            tell(request, address)

    server.handle_error = handle_error


def _tells_news(record: logging.LogRecord) -> bool:
    """False for what py4j, on the root logger, logs of a call that Java has not answered: the call
    raises it, too."""
    error = record.exc_info[1] if record.exc_info else None
    return not (isinstance(error, Py4JNetworkError) and Path(record.pathname).parent.name == "py4j")
