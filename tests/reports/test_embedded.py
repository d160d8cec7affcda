"""Which case files a report holds itself."""

from __future__ import annotations

import base64
from pathlib import Path

from sample_figures import finding

from crashmq.reports import embedded


def a_case(size: int) -> embedded.EmbeddedCase:
    return embedded.EmbeddedCase("CL-1.case.json", b"x" * size)


def test_cases_are_read_in_the_order_of_their_findings(tmp_path: Path) -> None:
    cases = {name: tmp_path / f"{name}.case.json" for name in ("a", "b")}
    for name, place in cases.items():
        place.write_text(name)
    found = [finding(signature=name) for name in ("b", "no program", "a")]

    read = embedded.read_cases(found, cases)

    assert [(key, one.name, one.content) for key, one in read.items()] == [
        ("b", "b.case.json", b"b"),
        ("a", "a.case.json", b"a"),
    ]


def test_a_case_that_is_too_long_leaves_its_room_to_the_next() -> None:
    long, short = embedded.MARKDOWN_MAX - 10, 20
    cases = {"a": a_case(short), "b": a_case(long), "c": a_case(short)}

    assert list(embedded.as_markdown(cases)) == ["a", "c"]
    assert list(embedded.as_html(cases)) == ["a", "b", "c"]
    assert embedded.as_html({"a": a_case(embedded.HTML_MAX)}) == {}


def test_what_is_saved_is_what_was_there_byte_for_byte() -> None:
    case = embedded.EmbeddedCase("a.case.json", b"\xff {}\r\n")

    assert base64.b64decode(case.address.partition(",")[2]) == case.content
    assert case.text == "\ufffd {}"


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    assert embedded.EmbeddedCase("a", b"{}").fence == "```"
    assert embedded.EmbeddedCase("a", b"a ```` b").fence == "`````"
