from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

from crashmq.models import laws
from crashmq.models.laws.registry import declared_laws

DOCUMENT = Path(__file__).parents[2] / "docs" / "laws.md"


def test_the_table_of_laws_is_that_of_the_code() -> None:
    for module in pkgutil.iter_modules(laws.__path__):
        importlib.import_module(f"crashmq.models.laws.{module.name}")
    row = re.compile(r"^\| ([A-Z]+-\d+) \| ([^|]+) \| ([I\d ]+) \| `(\w+)` \|", re.M)

    written = {found[0]: found[1:] for found in row.findall(DOCUMENT.read_text())}

    assert written == {
        law.id: (law.sentence, law.catalogue, law.judge.__module__.rpartition(".")[2])
        for law in declared_laws().values()
    }
