"""Survival curves as geometry: how many planted bugs are still not found, by time.

The axis of time is logarithmic and begins at ten milliseconds, since the times of kills
span five powers of ten. Nothing here writes markup, as in ``charts``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crashmq.reports.charts import Label

WIDTH, HEIGHT = 860, 300
_LEFT, _TOP, _BOTTOM = 46, 12, 32
_FIRST_S = 0.01


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: its name, the position of the name, and its path."""

    name: str
    label: Label
    path: str
    tone: int


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves with the same axes; ``end`` is the right end of the plot."""

    width: float
    height: float
    left: float
    top: float
    end: float
    bottom: float
    times: tuple[Label, ...]
    shares: tuple[Label, ...]
    lines: tuple[Line, ...]


def survival_curves(
    moments: Mapping[str, Sequence[tuple[float, float]]], until_s: float
) -> Curves:
    """Step curves that begin at 1 and fall.

    Args:
        moments: by curve, pairs (seconds, share still not found from then on), by time.
        until_s: where the axis of time ends.
    """
    last = math.ceil(math.log10(max(until_s, 1.0)))
    first = math.log10(_FIRST_S)
    end, bottom = WIDTH - 150.0, HEIGHT - float(_BOTTOM)

    def x(seconds: float) -> float:
        share = (math.log10(max(seconds, _FIRST_S)) - first) / (last - first)
        return round(_LEFT + share * (end - _LEFT), 1)

    def y(share: float) -> float:
        return round(_TOP + (1 - share) * (bottom - _TOP), 1)

    lines = []
    for tone, (name, steps) in enumerate(moments.items()):
        alive = steps[-1][1] if steps else 1.0
        path = f"M{x(_FIRST_S)} {y(1.0)}"
        path += "".join(f"H{x(seconds)}V{y(share)}" for seconds, share in steps)
        label = Label(end + 8, y(alive), name)
        lines.append(Line(name, label, f"{path}H{x(until_s)}", tone))
    powers = range(round(first), last + 1)
    return Curves(
        width=WIDTH,
        height=HEIGHT,
        left=_LEFT,
        top=_TOP,
        end=end,
        bottom=bottom,
        times=tuple(Label(x(10.0**n), bottom + 18, f"{10.0**n:g} s") for n in powers),
        shares=tuple(Label(_LEFT - 8, y(n / 4), f"{n * 25}%") for n in range(5)),
        lines=tuple(lines),
    )
