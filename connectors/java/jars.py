"""Delta's jars with their digests. They are downloaded once for each user of a machine."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tidegate.connectors.java.download import FetchError, fetch
from tidegate.connectors.java.repositories import MIRRORS, local_files, repositories, shown
from tidegate.engine.core.columns.user_cache import cache_folder, write_whole
from tidegate.rules.errors import EngineError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar: Maven's group, artifact and version, and the SHA-256 of its bytes."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Its path in a Maven repository."""
        folder = self.group.replace(".", "/")
        return f"{folder}/{self.artifact}/{self.version}/{self.name}"


# Delta 4.4.0 for Spark 4.2 and its dependencies, without those that Spark ships.
JARS = tuple(
    Jar(*line.split())
    for line in """\
io.delta delta-spark_4.2_2.13 4.4.0 \
27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead
io.delta delta-storage 4.4.0 \
c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc
io.delta delta-kernel-api 4.4.0 \
ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11
io.delta delta-kernel-defaults 4.4.0 \
225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b
io.delta delta-kernel-unitycatalog 4.4.0 \
cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa
io.unitycatalog unitycatalog-client 0.6.0 \
48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19
io.unitycatalog unitycatalog-hadoop 0.6.0 \
c47b63c961c87102b9e1d63809a0915ba4c86b7652f57c8d39ca3a05b441a150
com.fasterxml.jackson.datatype jackson-datatype-jdk8 2.13.5 \
e58761751fea8a00dc626aae1c5f1be38c5cfd487aeb333d933a4ab5f5a73c55
org.roaringbitmap shims 0.9.25 \
0b82ed6cb1caf0706304b42358d568eb6faf190eadea7f2b2d365cb63156b40d
javax.annotation javax.annotation-api 1.3.2 \
e04ba5195bcd555dc95650f7cc614d151e4bcd52d29a10b8aa2197f3ab89ab9b
commons-logging commons-logging 1.3.0 \
66d3c980470b99b0c511dad3dfc0ae7b265ec1fb144e96bc0253a8a175fd34d9
""".splitlines()
)


def delta_jars(conf: Mapping[str, str] | None = None) -> list[str]:
    """Paths of Delta's jars. A missing jar is copied from this user's Maven or Ivy folders, else
    downloaded. `conf`: Spark's entries, which may name repositories.

    Raises EngineError `jars-unresolved`; the jars downloaded before stay.
    """
    folder = cache_folder() / "jars"
    folder.mkdir(exist_ok=True)
    given = conf or {}
    lacking = [jar for jar in JARS if not _is_here(jar, folder / jar.name, given)]
    if lacking:
        _fetch(lacking, folder, given)
    return [str(folder / jar.name) for jar in JARS]


def _is_here(jar: Jar, kept: Path, conf: Mapping[str, str]) -> bool:
    """Whether the jar is whole in our folder, or was copied to it from elsewhere on this
    machine."""
    for file in chain([kept], local_files(jar.group, jar.path, conf)):
        if (content := _whole(file, jar)) is not None:
            if file != kept:
                write_whole(kept, content)
            return True
    return False


def _whole(file: Path, jar: Jar) -> bytes | None:
    """A file's bytes, if they are the jar's."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == jar.sha256 else None


def _fetch(lacking: list[Jar], folder: Path, conf: Mapping[str, str]) -> None:
    places = repositories(conf)
    log.info("fetching Delta's jars from %s, once for this user", shown(places[0]))
    for number, jar in enumerate(lacking, 1):
        try:
            content = fetch([f"{place}/{jar.path}" for place in places], jar.sha256)
        except FetchError as error:
            raise EngineError(
                "jars-unresolved",
                f"Delta's jars, which Spark needs, could not be fetched: {error}",
                "start again once there is a network; jars that were fetched stay "
                f"({len(JARS) - len(lacking) + number - 1} of {len(JARS)}); "
                f"{MIRRORS}=https://.. names a Maven mirror",
            ) from error
        write_whole(folder / jar.name, content)
        size = len(content) / 1e6
        log.info("fetched %d of %d: %s, %.1f MB", number, len(lacking), jar.name, size)


if __name__ == "__main__":  # where an image is built
    delta_jars()
