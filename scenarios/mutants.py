"""The planted bugs, by their id in the catalogue of bugs that real stores shipped.

Each names the laws of which one must flag it, and a trigger: a program that is red with
the bug and green without. How an edit is applied is told in ``scenarios.mutation``.
Ids R and X are the catalogue's, S those of the sharp edges (``docs/sharp-edges.md``;
S01 is row 14.1), N of what else was found in RocketMQ, E our own.
"""

from __future__ import annotations

from scenarios.mutation import Mutant
from scenarios.planted.beside import BESIDE_MUTANTS
from scenarios.planted.checkpoint import CHECKPOINT_MUTANTS
from scenarios.planted.deletion import DELETION_MUTANTS
from scenarios.planted.dispatch import DISPATCH_MUTANTS
from scenarios.planted.flush import FLUSH_MUTANTS
from scenarios.planted.index import INDEX_MUTANTS
from scenarios.planted.left_out import LEFT_OUT
from scenarios.planted.mapped_files import MAPPED_FILE_MUTANTS
from scenarios.planted.pressure import PRESSURE_MUTANTS
from scenarios.planted.queues import QUEUE_MUTANTS
from scenarios.planted.reading import READING_MUTANTS
from scenarios.planted.records import RECORD_MUTANTS
from scenarios.planted.recovery import RECOVERY_MUTANTS
from scenarios.planted.restarts import RESTART_MUTANTS
from scenarios.planted.shipped import SHIPPED_MUTANTS
from scenarios.planted.shipped_starts import SHIPPED_START_MUTANTS
from scenarios.planted.shipped_writes import SHIPPED_WRITE_MUTANTS
from scenarios.planted.sick_disks import SICK_DISK_MUTANTS
from scenarios.planted.told import TOLD_MUTANTS

__all__ = ["LEFT_OUT", "MUTANTS"]

MUTANTS: dict[str, Mutant] = {
    mutant.id: mutant
    for mutant in (
        *BESIDE_MUTANTS,
        *CHECKPOINT_MUTANTS,
        *DELETION_MUTANTS,
        *DISPATCH_MUTANTS,
        *FLUSH_MUTANTS,
        *INDEX_MUTANTS,
        *PRESSURE_MUTANTS,
        *MAPPED_FILE_MUTANTS,
        *QUEUE_MUTANTS,
        *READING_MUTANTS,
        *RECORD_MUTANTS,
        *RECOVERY_MUTANTS,
        *RESTART_MUTANTS,
        *SHIPPED_MUTANTS,
        *SHIPPED_START_MUTANTS,
        *SHIPPED_WRITE_MUTANTS,
        *SICK_DISK_MUTANTS,
        *TOLD_MUTANTS,
    )
}
