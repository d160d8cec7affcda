"""Module names in edits: import names, and the names in mutants of older versions.

Once the rooms were packages of their own, and the store's modules lay in one folder:
``engine.store.mapped_file`` is ``crashmq.engine.store.logfile.mapped_file`` today.
"""

from __future__ import annotations

from pathlib import Path

import crashmq

NAME = "crashmq"
ROOMS = ("engine", "harness", "models", "reports", "scenarios")
_STORE = ("engine", "store")
_RENAMED = {
    "allocate": "allocate_mapped_file_service",
    "checkpoint": "store_checkpoint",
    "clean_commit_log": "clean_commit_log_service",
    "clean_consume_queue": "clean_consume_queue_service",
    "reput": "reput_message_service",
    "store_stats": "store_stats_service",
}


def full_name(module: str) -> str:
    """The import name of a module; an unknown name is returned as it is."""
    parts = tuple(module.split("."))
    if parts[0] in ROOMS:
        parts = (NAME, *parts)
    if parts[1:3] == _STORE and len(parts) == 4:
        parts = (*parts[:3], *_below_the_store(parts[3]))
    return ".".join(parts)


def room_of(module: str) -> str:
    """The top package of a module, as ``crashmq.engine``.

    A planted bug replaces objects that were made from the module's values there.
    """
    first, _, rest = module.partition(".")
    return f"{first}.{rest.partition('.')[0]}" if first == NAME and rest else first


def _below_the_store(name: str) -> tuple[str, ...]:
    root = Path(crashmq.__file__).parent.joinpath(*_STORE)
    if (root / f"{name}.py").exists():
        return (name,)
    found = sorted(root.rglob(f"{_RENAMED.get(name, name)}.py"))
    return found[0].relative_to(root).with_suffix("").parts if found else (name,)
