"""Which later operations a failed disk call may stop, and until when.

One row for each kind of file and of call; ``docs/disk.md`` shows the rows. A refusal
that a law excuses with the disk failure must have its row here. Without a row, a failed
call affects only its own op.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

ROUND: Final = "the next round"
START: Final = "the next start"


class Stops(NamedTuple):
    """What failing calls on a part of the store stop, and until when.

    ``part`` is a name in the store's directory; ``puts`` says that puts may be refused.
    """

    part: str
    calls: str
    stops: str
    until: str
    puts: bool = False


STOPS: Final[tuple[Stops, ...]] = (
    Stops("commitlog", "write, create", "puts: the log's end is unknown", START, True),
    Stops("commitlog", "sync", "puts, and every later flush of the log", START, True),
    Stops(
        "commitlog", "read", "dispatch stays at the record; the read's own op", ROUND
    ),
    Stops("commitlog", "remove", "the cleaner's round", ROUND),
    Stops("consumequeue", "write, create, read", "dispatch stays at the record", ROUND),
    Stops(
        "consumequeue",
        "sync",
        "the checkpoint's dispatched_offset and logics_msg_timestamp, the log's "
        "cleaner, an orderly end",
        START,
    ),
    Stops("consumequeue_ext", "write, create, sync", "as for its queue", START),
    Stops("index", "write, create, read", "dispatch stays at the record", ROUND),
    Stops("index", "sync", "index_msg_timestamp, an orderly end", START),
    Stops("checkpoint", "write, sync", "its round, and the log's cleaner", ROUND),
    Stops(
        "deletedTopics",
        "write, sync, remove, create",
        "a deletion of a topic; puts, if it hit the removal of queues",
        START,
        True,
    ),
    Stops("config", "write, sync, create, remove", "its persist", ROUND),
    Stops("abort", "create", "the start, which refuses", START),
)

_STOP_PUTS: Final = frozenset({one.part for one in STOPS if one.puts} | {""})


def may_stop_puts(failed_parts: Iterable[str], *, amid_deletion: bool) -> bool:
    """Whether failures on these parts allow the store to refuse puts until a start.

    A deletion of a topic that failed while it removed files allows that whatever part
    failed.
    """
    failed = frozenset(failed_parts)
    return bool(failed) and (amid_deletion or not failed.isdisjoint(_STOP_PUTS))
