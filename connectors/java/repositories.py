"""Where to find Maven artifacts: folders of this user, and the repositories that the settings of
Spark, Ivy and Maven name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pyspark

MIRRORS = "TIDEGATE_MAVEN"  # repositories in place of all others, separated by commas
CENTRAL = "https://repo1.maven.org/maven2"
_CENTRAL = re.compile(r"(^|,)\s*(central|\*|external:\*)\s*(,|$)")  # a mirror's `mirrorOf`
_ROOT = re.compile(r'\broot="(https?://[^"$]+|file:[^"$]+)"')


def repositories(conf: Mapping[str, str]) -> list[str]:
    """URLs of Maven repositories, in the order to ask them: those of TIDEGATE_MAVEN; else those of
    Spark's settings, then the mirrors in Maven's `settings.xml` or Maven Central."""
    if named := os.environ.get(MIRRORS):
        return _list(named)
    spark = {**_spark_defaults(), **conf}
    found = _list(spark.get("spark.jars.repositories", ""))
    found += _list(os.environ.get("DEFAULT_ARTIFACT_REPOSITORY", ""))
    if settings := spark.get("spark.jars.ivySettings"):
        with suppress(OSError):
            found += _list(",".join(_ROOT.findall(Path(settings).read_text(encoding="utf-8"))))
    return list(dict.fromkeys([*found, *(_maven_mirrors() or [CENTRAL])]))


def local_files(group: str, path: str, conf: Mapping[str, str]) -> Iterator[Path]:
    """The files in the folders of Maven and of Spark's Ivy that may be an artifact. `path`: as in a
    repository."""
    home = Path.home()
    yield home / ".m2" / "repository" / path
    name = path.rpartition("/")[2]
    artifact = path.split("/")[-3]
    ivy = {**_spark_defaults(), **conf}.get("spark.jars.ivy")
    for folder in [Path(ivy)] if ivy else sorted(home.glob(".ivy2*"), reverse=True):
        yield folder / "jars" / f"{group}_{name}"
        yield from (folder / "cache" / group / artifact).glob(f"*/{name}")


def shown(url: str) -> str:
    """A URL without the name and the password in it."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _list(text: str) -> list[str]:
    return [url.strip().rstrip("/") for url in text.split(",") if url.strip()]


def _spark_defaults() -> dict[str, str]:
    """`conf/spark-defaults.conf`, where Spark would look for it."""
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    folder = os.environ.get("SPARK_CONF_DIR") or Path(home, "conf")
    try:
        lines = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (re.split(r"[\s=:]+", line.strip(), maxsplit=1) for line in lines)
    return {p[0]: p[1] for p in pairs if len(p) == 2 and p[0].startswith("spark.")}


def _maven_mirrors() -> list[str]:
    """The mirrors of Maven Central in this user's `settings.xml`."""
    try:
        root = ElementTree.parse(Path.home() / ".m2" / "settings.xml").getroot()  # noqa: S314
    except (OSError, ElementTree.ParseError):
        return []
    mirrors = root.findall("{*}mirrors/{*}mirror")
    of = [(m.findtext("{*}mirrorOf") or "", m.findtext("{*}url") or "") for m in mirrors]
    return [url for names, at in of if _CENTRAL.search(names) for url in _list(at)]
