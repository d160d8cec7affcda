"""Asserts: whether this Python checks them, since who judges relies on them.

The store, the laws and the harness say with ``assert`` what must hold of themselves.
``python -O`` leaves all of that out, so that a defect of ours, or a planted bug, would
go on in silence and be told as a verdict.
"""

from __future__ import annotations


def are_checked() -> bool:
    """False under ``python -O`` and ``PYTHONOPTIMIZE``."""
    return __debug__


def refusal(who: str) -> str:
    """One sentence on why ``who`` does not start then."""
    return (
        f"{who} judges nothing under python -O or PYTHONOPTIMIZE, which leave out "
        f"every assert, and with them what must hold of the store and of crashmq; "
        f"start Python without."
    )
