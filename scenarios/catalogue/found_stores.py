"""Found stores: directories written by RocketMQ on which a store may be started.

Each is an archive in ``scenarios/found`` with the files of one store by their paths.
Released jars wrote them, and ``tests/corpus/found_stores.py`` makes them again. They
have log files of 4 to 16 KiB, queue files of seven to forty units, index files of
twenty entries, and some dozen messages.
"""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from crashmq.models.program import FoundStore

FOUND = Path(__file__).resolve().parents[1] / "found"
_SUFFIX = ".tar.xz"


def found_stores() -> tuple[str, ...]:
    """The names of all found stores, sorted."""
    return tuple(sorted(path.name[: -len(_SUFFIX)] for path in FOUND.iterdir()))


@cache
def files_found(name: FoundStore) -> Mapping[str, bytes]:
    """The files of a found store by path; none for the empty name."""
    files: dict[str, bytes] = {}
    if not name:
        return MappingProxyType(files)
    with tarfile.open(FOUND / f"{name}{_SUFFIX}") as archive:
        for entry in archive:
            content = archive.extractfile(entry)
            assert content is not None, f"{name}: {entry.name} is no file"
            files[entry.name] = content.read()
    return MappingProxyType(files)
