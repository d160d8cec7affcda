"""JUnit XML for CI servers: what the files of ``check`` and of ``soak`` share."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from crashmq.models.printable import printable_lines

FAILURE, ERROR, SKIPPED = "failure", "error", "skipped"
_NOT_IN_XML = {code: "" for code in range(32) if chr(code) not in "\t\n"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a test that did not just pass.

    Attributes:
        kind: failure, error or skipped.
        message: one line, which a CI server shows beside the test.
        law: the law that was broken; "" if it was none.
        text: the rest, of any number of lines.
    """

    kind: str
    message: str
    law: str = ""
    text: str = ""


class JUnit:
    """A file of suites, each with its tests."""

    def __init__(self, name: str) -> None:
        self._suites = ET.Element("testsuites", name=name)

    def add_suite(self, name: str) -> ET.Element:
        """A suite without tests."""
        return ET.SubElement(self._suites, "testsuite", name=_xml(name))

    def write(self, path: Path) -> None:
        """Count the tests of each suite, and write the file."""
        for suite in self._suites:
            suite.set("tests", str(len(suite)))
            for kind in (FAILURE, ERROR):
                suite.set(f"{kind}s", str(len(suite.findall(f"*/{kind}"))))
            suite.set(SKIPPED, str(len(suite.findall(f"*/{SKIPPED}"))))
        ET.indent(self._suites)
        tree = ET.ElementTree(self._suites)
        tree.write(path, encoding="utf-8", xml_declaration=True)


def add_test(
    suite: ET.Element, classname: str, name: str, outcome: Outcome | None = None
) -> None:
    """A test of a suite; it passed if it has no outcome."""
    test = ET.SubElement(suite, "testcase", classname=_xml(classname), name=_xml(name))
    if outcome is None:
        return
    law = {"type": outcome.law} if outcome.law else {}
    element = ET.SubElement(test, outcome.kind, law, message=_xml(outcome.message))
    element.text = _xml(outcome.text) or None


def _xml(text: str) -> str:
    """A text without characters that XML forbids."""
    return printable_lines(text).translate(_NOT_IN_XML)
