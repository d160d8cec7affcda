"""What a judge knows of a store that was never started: of what it begins with, too."""

from __future__ import annotations

from crashmq.harness.disk.profiles import PROFILES
from crashmq.models.knowledge.found import find
from crashmq.models.knowledge.knowledge import Knowledge
from crashmq.models.ops import Capability
from crashmq.models.program import Setup
from crashmq.scenarios.catalogue.found_stores import files_found


def first_known(setup: Setup, capabilities: frozenset[Capability]) -> Knowledge:
    """What is known before the first step; some subjects always begin anew."""
    disk = PROFILES[setup.disk_profile]
    known = Knowledge.of_new_store(setup, disk, capabilities)
    finds = {Capability.FINDS_STORES, Capability.STORES_AS_ROCKETMQ} <= capabilities
    if setup.begins_with and finds:
        find(known, files_found(setup.begins_with))
    return known
