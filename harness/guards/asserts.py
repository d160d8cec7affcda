"""Whether this Python checks asserts, on which every judgement relies.

The store, the laws and the harness state with ``assert`` what must hold of themselves.
``python -O`` drops these checks, so that a defect of ours, or a planted bug, would
continue unnoticed and end up in a verdict.
"""

from __future__ import annotations


def are_checked() -> bool:
    """False under ``python -O`` and ``PYTHONOPTIMIZE``."""
    return __debug__


def refusal(who: str) -> str:
    """One sentence that says why ``who`` does not start under ``python -O``."""
    return (
        f"{who} judges nothing under python -O or PYTHONOPTIMIZE, which leave out "
        f"every assert, and with them what must hold of the store and of crashmq; "
        f"start Python without."
    )
