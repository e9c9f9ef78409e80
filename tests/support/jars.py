"""The jars that most classes of Java are in, Delta's among them. Java looks for a class in one jar
after the other: of nearly three hundred, in no useful order, that is a tenth of its time."""

from __future__ import annotations

from pathlib import Path

import pyspark

from tidegate.connectors.java.jars import delta_jars

MUCH_USED = (
    "scala-library",
    "spark-catalyst_",
    "spark-core_",
    "spark-sql_",
    "spark-sql-api_",
    "scala-reflect",
    "jackson-databind",
    "hadoop-client-api",
    "parquet-column",
    "log4j-core",
    "hadoop-client-runtime",
    "arrow-vector",
)


def first_jars() -> str:
    """A class path."""
    folder = Path(pyspark.__file__).parent / "jars"
    much_used = [str(jar) for name in MUCH_USED for jar in folder.glob(f"{name}*.jar")]
    return ":".join([*(jar for jar in delta_jars() if "/delta-" in jar), *much_used])
