"""The phrases in which files are damaged, deleted or another program's, by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from crashmq.scenarios.programs.disowning import disown
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.losing import damage, delete, expire
from crashmq.scenarios.programs.space import Kind

OF_FILES: Final[dict[Kind, Callable[[Draft], None]]] = {
    "damage": damage,
    "disown": disown,
    "expire": expire,
    "delete": delete,
}
