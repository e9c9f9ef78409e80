"""Processes of their own that use the Spark of the tests: each costs two seconds, not a dozen.

    python -m tests.support.gateway WORDS

runs `tidegate WORDS` so. PYSPARK_GATEWAY_PORT and PYSPARK_GATEWAY_SECRET name the Spark.
"""

from __future__ import annotations

import sys

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tidegate.engine.cli.main import main


def gateway(spark: SparkSession) -> dict[str, str]:
    """The environment of a process that shall use this Spark."""
    java = spark.sparkContext._gateway.java_parameters
    return {
        "PYSPARK_GATEWAY_PORT": str(java.port),
        "PYSPARK_GATEWAY_SECRET": java.auth_token,
    }


def running_session() -> SparkSession:
    """The session that runs behind the gateway, as the active one of this thread."""
    found = launch_gateway()
    jvm = found.jvm
    java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    conf = SparkConf(_jvm=jvm, _jconf=java.getConf())
    context = SparkContext(jsc=java, gateway=found, conf=conf)
    return SparkSession(
        context, jvm.org.apache.spark.sql.classic.SparkSession.builder().getOrCreate()
    )


if __name__ == "__main__":
    running_session()
    main(sys.argv[1:])
