"""Java is asked for a class once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tidegate.connectors.delta.java_classes import OF_PYSPARK, java_class, keep_pyspark_classes


class Java:
    """A view of Java as py4j has it: an attribute that it lacks is looked for in Java."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> object:
        self.asked.append(name)
        return object()


def test_java_is_asked_for_a_class_once_by_its_full_name() -> None:
    java = Java()
    session: Any = SimpleNamespace(_jvm=java)
    found = java_class(session, "org.apache.hadoop.fs.Path")
    assert java_class(session, "org.apache.hadoop.fs.Path") is found
    assert java_class(session, "java.lang.Thread") is not found
    assert java.asked == ["org.apache.hadoop.fs.Path", "java.lang.Thread"]


def test_each_java_is_asked_for_its_own() -> None:
    first, second = (SimpleNamespace(_jvm=Java()) for _ in range(2))
    found = [java_class(session, "scala.Option") for session in (first, second)]  # type: ignore[arg-type]
    assert found[0] is not found[1]


def test_what_pyspark_asks_for_by_name_is_there_without_asking() -> None:
    java = Java()
    session: Any = SimpleNamespace(_jvm=java)
    keep_pyspark_classes(session)
    for name in OF_PYSPARK:
        assert getattr(java, name)
    assert java.asked == [*OF_PYSPARK]
