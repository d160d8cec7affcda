"""Config files of a broker that are not those on the disk."""

from __future__ import annotations

from misreporting import PUT, REPUT, bug, does, files

from crashmq.models.ops import (
    ConfigureGroup,
    Damage,
    PutMessage,
    Restart,
    RunService,
    Shutdown,
    Subscribe,
)
from crashmq.models.program import Setup

_BROKER = Setup(keeps_progress=True)
_PUTS = does(_BROKER, PUT)
_FILTERS = does(
    Setup(keeps_progress=True, filters=True),
    *(PUT, Subscribe("g", "T0", "a > 5", "SQL92")),
    RunService("persist_consumer_filter"),
)


def _said(before: str, after: str) -> str:
    """Text that lets the table of filters say something else."""
    return (
        "files.update({p: bytes(d).replace("
        f"{before.encode()!r}, {after.encode()!r}) for p, d in files.items() "
        "if 'Filter' in p})"
    )


def _torn(path: str) -> str:
    """Text that leaves neither of a file and its backup whole."""
    return (
        f"files.update({{p: b'{{' for p in files if p.startswith({path!r})}})"
        f" if {path!r} in files else None"
    )


def _reads(path: str, before: str, after: str) -> str:
    """Text that lets a file say something else, from its second change on."""
    return (
        f"files.update({{{path!r}: bytes(files[{path!r}]).replace("
        f"{before.encode()!r}, {after.encode()!r})}}) if {path!r} in files else None"
    )


_TOPICS, _GROUPS = "config/topics.json", "config/subscriptionGroup.json"
_TWICE = (PUT, REPUT, PutMessage("T1", 0, 16), REPUT)
_TWO_TOPICS = does(_BROKER, *_TWICE)
_NEW_GROUP = does(_BROKER, ConfigureGroup("g", 3, 1), PUT, REPUT)
_GROUP = does(_BROKER, ConfigureGroup("g", 3, 1), ConfigureGroup("g", 4, 1), PUT, REPUT)

LIES_OF_CONFIG_FILES = (
    files("CFG-1", _torn("config/topics.json"), _PUTS),
    files("CFG-1", _torn("config/consumerFilter.json"), _FILTERS),
    files("CFG-3", _said('"consumerGroup":"g"', '"consumerGroup":"h"'), _FILTERS),
    files("CFG-3", _said('"topic":"T0"', '"topic":"T1"'), _FILTERS),
    files("CFG-4", _said('"bitNum":112', '"bitNum":120'), _FILTERS),
    files("CFG-4", _said('"bitPos":[', '"bitPos":[1,'), _FILTERS),
    files("SVC-9", _said('"expression":"a > 5"', '"expression":"a > 6"'), _FILTERS),
    files("SVC-9", _said('"dead":false', '"dead":true'), _FILTERS),
    files("CFG-5", _reads(_TOPICS, '"perm":6', '"perm":4'), _TWO_TOPICS),
    files("CFG-5", _reads(_TOPICS, '"order":false,', ""), _TWO_TOPICS),
    files("CFG-5", _reads(_GROUPS, '"brokerId":0', '"brokerId":1'), _NEW_GROUP),
    files("CFG-6", _reads(_TOPICS, '"counter":2', '"counter":3'), _TWO_TOPICS),
    files("CFG-6", _reads(_TOPICS, '"timestamp":17', '"timestamp":27'), _TWO_TOPICS),
    files("CFG-6", _reads(_GROUPS, '"counter":2', '"counter":1'), _GROUP),
    files(
        "CFG-7",
        _reads(f"{_TOPICS}.bak", '"timestamp":17', '"timestamp":27'),
        _TWO_TOPICS,
    ),
    files("CFG-7", _reads(f"{_GROUPS}.bak", '"counter":1', '"counter":0'), _GROUP),
    files("CFG-8", _reads(_TOPICS, '"perm":6', '"perm": 6'), _TWO_TOPICS),
    bug(
        "CFG-9",
        "crashmq.engine.common.config_file:ConfigFile.settle",
        "self._write_whole(self._path, self._kept)",
        "pass",
        does(_BROKER, *_TWICE, Shutdown(), Damage(_TOPICS, "truncate", 5), Restart()),
    ),
    files("CFG-8", _reads(_TOPICS, "\t", "  "), _TWO_TOPICS),
)
