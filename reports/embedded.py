"""The case files that a report holds itself, so that it can be mailed alone.

They are taken in the order of the findings until a number of characters is reached, so
that a page stays small; the others are named by their path, as all of them are.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from crashmq.reports.figures import Finding
from crashmq.reports.places import Place

HTML_MAX = 700_000
MARKDOWN_MAX = 200_000  # GitHub shows a step's summary of at most 1 MiB


@dataclass(frozen=True, slots=True)
class EmbeddedCase:
    """A case file by its name and content."""

    name: str
    content: bytes

    @property
    def text(self) -> str:
        """The content to be read; bytes that are no UTF-8 are marked."""
        return self.content.decode("utf-8", "replace").rstrip()

    @property
    def address(self) -> str:
        """A ``data:`` address, from which a browser saves exactly these bytes."""
        encoded = base64.b64encode(self.content).decode("ascii")
        return f"data:application/json;base64,{encoded}"

    @property
    def fence(self) -> str:
        """A fence of Markdown that the text does not contain."""
        fence = "```"
        while fence in self.text:
            fence += "`"
        return fence


def read_cases(
    found: Iterable[Finding], cases: Mapping[str, Place]
) -> dict[str, EmbeddedCase]:
    """The case files by signature, in the order of the findings.

    Args:
        found: the findings of the run.
        cases: where a case file lies, by signature.
    """
    places = {
        one.signature: cases[one.signature] for one in found if one.signature in cases
    }
    return {
        signature: EmbeddedCase(place.name, place.read_bytes())
        for signature, place in places.items()
    }


def as_html(cases: Mapping[str, EmbeddedCase]) -> dict[str, EmbeddedCase]:
    """Those that fit into a page, where each is there as a text and as an address."""
    return _that_fit(
        cases,
        {key: len(one.text) + len(one.address) for key, one in cases.items()},
        HTML_MAX,
    )


def as_markdown(cases: Mapping[str, EmbeddedCase]) -> dict[str, EmbeddedCase]:
    """Those that fit into a text."""
    sizes = {key: len(one.text) for key, one in cases.items()}
    return _that_fit(cases, sizes, MARKDOWN_MAX)


def _that_fit(
    cases: Mapping[str, EmbeddedCase], sizes: Mapping[str, int], most: int
) -> dict[str, EmbeddedCase]:
    """One that is too large leaves its room to the smaller ones after it."""
    left, fit = most, {}
    for signature, case in cases.items():
        if sizes[signature] <= left:
            left -= sizes[signature]
            fit[signature] = case
    return fit
