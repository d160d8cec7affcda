"""The ops."""

from __future__ import annotations

from crashmq.models.ops import OP_CLASSES


def rows() -> dict[str, str]:
    """The first line on each op, by its name."""
    return {cls.__name__: (cls.__doc__ or "").partition("\n")[0] for cls in OP_CLASSES}
