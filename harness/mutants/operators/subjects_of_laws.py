"""What a law is about, and whether it is about the part in which a mutant lies.

A kill by a law about something else counts; but the laws of the mutated part did not
notice, so the kill is marked. Laws that any code can violate (an exception, a hang) are
about nothing in particular, and such kills are marked too.
"""

from __future__ import annotations

from collections.abc import Mapping

ANY = frozenset({"RUN", "RES", "DET", "timeout", "died"})
_CONSUMERS = frozenset(
    {"ADM", "CON", "RTY", "MBR", "TOP", "GRP", "OFS", "OFF", "LP", "FLT"}
)
_STORE = frozenset(
    {"CL", "CP", "CQ", "DEL", "DSP", "DUR", "FL", "IX", "PUT", "RD", "REC", "ST", "SVC"}
)
_CONFIG = frozenset({"CFG", "OFS", "OFF", "DLY", "FLT", "TOP", "MBR", "GRP"})

FAMILIES: Mapping[str, frozenset[str]] = {
    "broker.filter": frozenset({"FLT", "CON", "LP", "CFG", "CQ"}),
    "broker.schedule": frozenset({"DLY", "RTY", "CFG", "DSP"}),
    "broker.offset": frozenset({"OFS", "OFF", "CON", "CFG", "LP", "ADM"}),
    "broker.longpolling": frozenset({"LP", "CON"}),
    "broker.processor": _CONSUMERS | {"RD", "PUT", "DLY"},
    "broker.topic": frozenset({"TOP", "RTY", "CFG"}),
    "broker.subscription": frozenset({"MBR", "CON", "RTY", "TOP", "GRP", "CFG", "ADM"}),
    "broker.client": frozenset({"MBR", "CON", "ADM"}),
    "broker": _CONSUMERS | {"DLY", "CFG"},
    "client": _CONSUMERS,
    "common": _CONFIG | _CONSUMERS,
    "remoting": _CONSUMERS | {"RD"},
    "filter": frozenset({"FLT", "CON", "LP"}),
    "store.index": frozenset({"IX", "REC", "CP", "DUR", "SVC"}),
    "store.clean": frozenset({"DEL", "CL", "CQ", "CP", "REC", "IX", "DUR", "SVC"}),
    "store.queue": frozenset(
        {"CQ", "RD", "REC", "DSP", "CP", "DEL", "FL", "DUR", "SVC"}
    ),
    "store.message": _STORE | {"DLY", "RTY"},
    "store": _STORE,
}
"""By package or module below the engine: the families of laws that are about it."""


def about(law: str, module: str) -> str:
    """``own``, ``another`` or ``any``: whether a law is about the module's part."""
    family = law.partition("-")[0]
    if family in ANY:
        return "any"
    name = module.removeprefix("crashmq.engine.")
    while name not in FAMILIES:
        assert "." in name, module
        name = name.rpartition(".")[0]
    return "own" if family in FAMILIES[name] else "another"
