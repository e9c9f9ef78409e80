"""An engine in a process of its own, to be ended at a failpoint: `python -m tests.crash.child DIR`.

It drives the Spark that the tests run already (PYSPARK_GATEWAY_PORT, PYSPARK_GATEWAY_SECRET), so
that a process costs two seconds instead of a dozen.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tests.crash.lake import Lake
from tidegate import Engine


def running_session() -> SparkSession:
    """The session that runs behind the gateway."""
    gateway = launch_gateway()
    jvm = gateway.jvm
    java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(
        jvm.org.apache.spark.SparkContext.getOrCreate()
    )
    conf = SparkConf(_jvm=jvm, _jconf=java.getConf())
    context = SparkContext(jsc=java, gateway=gateway, conf=conf)
    return SparkSession(
        context, jvm.org.apache.spark.sql.classic.SparkSession.builder().getOrCreate()
    )


if __name__ == "__main__":
    lake = Lake(Path(sys.argv[1]))
    with Engine(lake.rulebook, spark=running_session(), store=lake.store) as engine:
        engine.run(until_idle=True)
