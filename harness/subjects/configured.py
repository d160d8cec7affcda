"""What of a setup is told to a broker or a consumer, as fields of its configuration.

Options at their usual values are not told: so it is the engine's own defaults that are
judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crashmq.models.program import Setup


def told_fields(setup: Setup, fields: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """The options of a setup that are not as usual, by the fields that they set.

    ``fields``: by the option's name, the fields of a configuration that have its value.
    """
    usual = Setup()
    return {
        field: getattr(setup, option)
        for option, names in fields.items()
        for field in names
        if getattr(setup, option) != getattr(usual, option)
    }
