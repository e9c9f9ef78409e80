"""The long-lived Spark session: classic, with Delta, tuned for many small jobs."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tidegate.connectors.delta.faults import SPARK_ERRORS, fault, is_lost
from tidegate.connectors.delta.java_classes import java_class, keep_pyspark_classes
from tidegate.connectors.delta.plans import Plans
from tidegate.connectors.java.jars import delta_jars
from tidegate.connectors.java.runtime import java_for_spark
from tidegate.engine.core.scratch_folder import scratch_folder
from tidegate.engine.core.text.logs import doing
from tidegate.rules.errors import EngineError

log = logging.getLogger(__name__)
EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
SESSION = "org.apache.spark.sql.SparkSession"  # of Java
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

LOCAL = "local[*]"
SUBSTITUTE = "spark.sql.variable.substitute"

# Settings of a session, not of the process: `new_session` sets them also over a user's Spark.
SMALL_JOBS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    # Spark would evaluate what a text says twice, and the first operand of a BETWEEN, beforehand:
    # outside of the TryEval around the text. On aggregates such a BETWEEN fails.
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.legacy.duplicateBetweenInput": "true",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Delta would refuse a version whose own commit is older than deletedFileRetentionDuration. But
    # its files are kept for so long after the next commit: until then a condition sees it (G14).
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    # A text runs as it was judged: Spark must not replace `${env:..}` in it.
    SUBSTITUTE: "false",
    # Without it, named parameters stay unbound where Delta's extension is there.
    "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The default makes a slow local relation of an Arrow table below 48 MB.
    "spark.sql.execution.arrow.localRelationThreshold": "1b",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500000",
}


def start_session(app: str = "tidegate", conf: Mapping[str, str] | None = None) -> SparkSession:
    """The active classic session if there is one, else a new one. It never prints to stdout.

    `conf`: Spark configuration entries. They win over ours. A session that runs already ignores
    them. Raises EngineError `spark-connect`, `session-without-delta`, `java-missing`,
    `jars-unresolved`, `session-failed`.
    """
    if active := SparkSession.getActiveSession():
        check_session(active)
        return active
    _refuse_connect("SPARK_REMOTE" in os.environ)
    given: dict[str, Any] = {**_process_conf(conf or {}), **SMALL_JOBS, **(conf or {})}
    builder = SparkSession.builder.appName(app).config(map=given)
    log.info("starting Spark %s", pyspark.__version__)
    try:
        with java_for_spark(), doing("starting Spark"):
            spark = builder.getOrCreate()
    except SPARK_ERRORS as error:
        raise EngineError(
            "session-failed",
            f"Spark does not start: {fault(error).line}",
            "Java's own message, if any, is above; check --spark-conf, SPARK_HOME's "
            "conf/spark-defaults.conf, and the machine's memory",
        ) from error
    check_session(spark)
    _choose_python(spark.sparkContext)
    spark.sparkContext.setLogLevel("ERROR")
    quieten_deaths(spark.sparkContext)
    return spark


def _choose_python(context: SparkContext) -> None:
    """Which Python workers run. PySpark itself reads the setting in `spark-submit` alone."""
    if chosen := context.getConf().get("spark.pyspark.python"):
        context.pythonExec = chosen
    elif _is_local(str(context.master)) and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable  # `python3` may lack this package


def ensure_active(spark: SparkSession) -> None:
    """Make a session this thread's active one in Java, unless there is one.

    A thread begins without. Delta asks for the active session when it reads a checkpoint itself,
    which it does where reading ahead failed: `DELTA_SPARK_SESSION_NOT_SET`.
    """
    sessions = java_class(spark, SESSION)
    if sessions.getActiveSession().isEmpty():
        sessions.setActiveSession(spark._jsparkSession)


def stop_session(spark: SparkSession) -> None:
    """End a session that was started here, without the log lines of jobs that are cut off."""
    try:
        spark.sparkContext.setLogLevel("OFF")
        spark.stop()
    except SPARK_ERRORS as error:
        if not is_lost(error):
            raise


def discard_session(spark: SparkSession, *, with_java: bool = False) -> None:
    """Forget a session whose Java or context has ended, so that another can be started. Otherwise
    PySpark would keep using the dead connection. `with_java`: kill a Java that still runs, for
    tasks that nobody can cancel end only with it."""
    if not with_java:
        with suppress(*SPARK_ERRORS, EOFError):
            spark.stop()
    gateway: Any = SparkContext._gateway
    if gateway is not None and (with_java or not _answers(gateway)):
        process = getattr(gateway, "proc", None)
        with suppress(*SPARK_ERRORS):
            gateway.shutdown()
        if process is not None:
            process.kill()
            process.wait()
        SparkContext._gateway = None
        SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def _answers(gateway: Any) -> bool:
    """Whether Java answers."""
    try:
        gateway.jvm.System.nanoTime()
    except SPARK_ERRORS:
        return False
    return True


def check_session(spark: SparkSession) -> None:
    """Raises EngineError unless `spark` is a classic session with Delta, and our sessions over it
    run texts as they are written, without substitution of variables."""
    _refuse_connect(".connect." in type(spark).__module__)
    if EXTENSION not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise EngineError(
            "session-without-delta",
            "the active Spark session runs without Delta's extension",
            f"start it with spark.sql.extensions={EXTENSION} and "
            f"spark.sql.catalog.spark_catalog={CATALOG}, or let tidegate start its own",
        )
    keep_pyspark_classes(spark)
    _check_substitution(spark)
    _quieten(spark)


def new_session(spark: SparkSession) -> SparkSession:
    """A new session over the same tables, with the settings of small jobs. No other session sees
    its temporary views and settings."""
    session = spark.newSession()
    for key, value in SMALL_JOBS.items():
        session.conf.set(key, value)
    return session


def _quieten(spark: SparkSession) -> None:
    """Silences an error line of Delta that reports no error: a filter that Parquet cannot apply is
    applied later."""
    log4j = "org.apache.logging.log4j"
    levels = java_class(spark, f"{log4j}.Level")
    configurator = java_class(spark, f"{log4j}.core.config.Configurator")
    name = "org.apache.spark.sql.delta.DeltaParquetFileFormat"
    for logger in (name, f"{name}Base"):
        configurator.setLevel(logger, levels.OFF)


def _check_substitution(spark: SparkSession) -> None:
    """Raises EngineError `substitution-on` where a session of ours replaces variables in a text. A
    probe shows it."""
    probe = "${spark.sql.session.timeZone}"
    if str(Plans(new_session(spark)).expression(f"'{probe}'").value()) != probe:
        raise EngineError(
            "substitution-on",
            f"Spark puts variables into SQL texts although {SUBSTITUTE} is false",
            "an extension of the session does it; let tidegate start its own session",
        )


def _process_conf(given: Mapping[str, str]) -> dict[str, str]:
    stack = ExitStack()
    atexit.register(stack.close)
    scratch = str(stack.enter_context(scratch_folder()))
    logging = Path(__file__).with_name("log4j2.properties").as_uri()
    return {
        **_ports_conf(given.get("spark.master", LOCAL)),
        "spark.master": LOCAL,
        "spark.jars": given.get("spark.jars") or ",".join(delta_jars(given)),
        "spark.sql.extensions": EXTENSION,
        "spark.sql.catalog.spark_catalog": CATALOG,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": scratch,
        "spark.local.dir": scratch,  # rows are spilled there
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Nobody looks at what the page on Spark's port would show of each query: its plan in
        # words, and a thousand queries before it, through which each new one searches.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.ui.retainedExecutions": "1",
        "spark.driver.memory": "2g",
        # UsePerfData is for jstat: it would wake a Java thread twenty times a second.
        # ExitOnOutOfMemoryError: Java's state is unknown then; it ends and is started again.
        "spark.driver.extraJavaOptions": "-XX:-UsePerfData -XX:+ExitOnOutOfMemoryError "
        f"-Dlog4j2.configurationFile={logging}",
        # An expression that overflows the stack fails its task; it must not end Java.
        "spark.executor.killOnFatalError.depth": "0",
    }


def _ports_conf(master: str) -> dict[str, str]:
    """Settings that close Spark's ports to others: they take serialised Java objects.

    In local mode nobody on another machine calls, and Spark makes a secret that never leaves its
    process. Callers must have it. Encryption costs nothing there, for no data goes between
    processes. The executors of other masters must reach the driver, and need a secret that the user
    sets."""
    if not _is_local(master):
        return {}
    return {
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
    }


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


def _refuse_connect(connect: bool) -> None:
    if connect:
        raise EngineError(
            "spark-connect",
            "Spark Connect is refused: the engine decides on Spark's own plans",
            "give it a classic session, or unset SPARK_REMOTE and let tidegate start its own",
        )


def quieten_deaths(context: SparkContext) -> None:
    """Suppress stack traces about a connection to Java that was cut."""
    logging.getLogger().addFilter(_tells_news)
    server: Any = context._accumulatorServer
    tell = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            tell(request, address)

    server.handle_error = handle_error


def _tells_news(record: logging.LogRecord) -> bool:
    """False for py4j's log line about a call that Java has not answered: the call raises the
    same."""
    error = record.exc_info[1] if record.exc_info else None
    return not (isinstance(error, Py4JNetworkError) and Path(record.pathname).parent.name == "py4j")
