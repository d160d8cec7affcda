"""Which paths belong to a store, and which are foreign files."""

from __future__ import annotations

from functools import lru_cache

NAME_DIGITS = 20
INDEX_NAME_DIGITS = 17
_BASE_MAX = (1 << 63) - 1
_NAME_MAX = 255
_QUEUE_ID_MAX = 10
_RUN_FILES = frozenset({"abort", "checkpoint", "lock"})
_CONFIG = "config"


@lru_cache(maxsize=4096)
def is_of_a_store(path: str, *, has_index: bool) -> bool:
    """Whether a store could have created a file with this path.

    The log is ``commitlog/<20 digits>``; a queue is
    ``consumequeue[_ext]/<topic>/<queue_id>/<20 digits>``; an index file, with
    ``has_index``, ``index/<17 digits>``. Also the files of a run, such as ``abort``,
    and all of ``config``.
    """
    top, *below = path.split("/")
    match top, below:
        case "commitlog", [name]:
            return _is_number(name, NAME_DIGITS)
        case "index", [name]:
            return has_index and _is_number(name, INDEX_NAME_DIGITS)
        case "consumequeue" | "consumequeue_ext", [_, queue_id, name]:
            return is_queue_id(queue_id) and _is_number(name, NAME_DIGITS)
        case _:
            return path in _RUN_FILES or top == _CONFIG


def base_of(name: str) -> int | None:
    """The offset in the name of a log or queue file; None if it is no such name."""
    return _base_in(name) if len(name) == NAME_DIGITS else None


def is_queue_id(name: str) -> bool:
    """Whether a folder's name is a queue_id as a store writes it; others are passed.

    Source: ConsumeQueueStore#loadConsumeQueues, ``Integer.parseInt``.
    """
    is_number = name.isascii() and name.isdecimal() and len(name) <= _QUEUE_ID_MAX
    return is_number and str(int(name)) == name


def misnamed_base(name: str) -> int | None:
    """The offset that RocketMQ reads from a name that no store writes; else None.

    RocketMQ takes any number, and sorts its files by name.

    Source: DefaultMappedFile#init, ``Long.parseLong``, MappedFileQueue#doLoad.
    """
    return _base_in(name) if len(name) != NAME_DIGITS else None


def _base_in(name: str) -> int | None:
    """The number that a name is, if it fits a Java long; else None."""
    if len(name) > _NAME_MAX or not _is_number(name, len(name)):
        return None
    base = int(name)
    return base if base <= _BASE_MAX else None


def _is_number(name: str, digits: int) -> bool:
    return len(name) == digits and name.isascii() and name.isdecimal()
