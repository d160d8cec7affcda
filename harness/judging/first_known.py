"""What a judge knows before the first start, with the store's initial files."""

from __future__ import annotations

from crashmq.harness.disk.profiles import PROFILES
from crashmq.models.knowledge.found import find
from crashmq.models.knowledge.knowledge import Knowledge
from crashmq.models.ops import Capability
from crashmq.models.program import Setup
from crashmq.scenarios.catalogue.found_stores import files_found


def first_known(setup: Setup, capabilities: frozenset[Capability]) -> Knowledge:
    """What is known before a program's first step, of the files it begins with."""
    disk = PROFILES[setup.disk_profile]
    known = Knowledge.of_new_store(setup, disk, capabilities)
    finds = {Capability.FINDS_STORES, Capability.STORES_AS_ROCKETMQ} <= capabilities
    if setup.begins_with and finds:
        find(known, files_found(setup.begins_with))
    return known
