"""Java classes: those that are there, found once, and those that are compiled from files here."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

OF_PYSPARK = ("PythonUtils", "PythonSQLUtils", "functions", "org.apache.spark.sql.functions")
_compiled: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()  # objects, by JVM


def java_class(session: SparkSession, name: str) -> Any:
    """The Java class of a full name, found once.

    Written as `jvm.org.apache..` it would be found anew each time, name by name: to learn that
    `org` is no class, Java looks into each of its hundreds of jars.
    """
    jvm: Any = session._jvm
    found = getattr(jvm, name)
    setattr(jvm, name, found)  # where the next one finds it, without asking Java
    return found


def keep_pyspark_classes(session: SparkSession) -> None:
    """Classes that PySpark would find anew for each column and each statement."""
    for name in OF_PYSPARK:
        java_class(session, name)


def compiled(session: SparkSession, name: str) -> Any:
    """The one object of a Java class, from the file of that name beside this one. Janino compiles
    it, which Spark ships for its own generated code."""
    known = _compiled.setdefault(session._jvm, {})
    if name not in known:
        compiler = java_class(session, "org.codehaus.janino.SimpleCompiler")()
        thread = java_class(session, "java.lang.Thread").currentThread()
        compiler.setParentClassLoader(thread.getContextClassLoader())
        # py4j caches methods by class name, so that each compiled class needs its own name.
        package = f"tidegate.w{uuid.uuid4().hex}"
        source = Path(__file__).with_name(f"{name}.java").read_text(encoding="utf-8")
        compiler.cook(source.replace("package tidegate;", f"package {package};", 1))
        known[name] = compiler.getClassLoader().loadClass(f"{package}.{name}").newInstance()
    return known[name]
