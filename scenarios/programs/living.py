"""The phrases of living consumers, by their kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from crashmq.scenarios.programs.asking import ask
from crashmq.scenarios.programs.consumers import commit, consume
from crashmq.scenarios.programs.draft import Draft
from crashmq.scenarios.programs.hanging import hang, suspend
from crashmq.scenarios.programs.listening import listen
from crashmq.scenarios.programs.locking import lock
from crashmq.scenarios.programs.outliving import outlive, stay
from crashmq.scenarios.programs.retrying import retry
from crashmq.scenarios.programs.sending import send
from crashmq.scenarios.programs.space import Kind
from crashmq.scenarios.programs.subscribing import subscribe

OF_CONSUMERS: Final[dict[Kind, Callable[[Draft], None]]] = {
    "consume": consume,
    "retry": retry,
    "outlive": outlive,
    "stay": stay,
    "hang": hang,
    "listen": listen,
    "suspend": suspend,
    "send": send,
    "ask": ask,
    "subscribe": subscribe,
    "lock": lock,
    "commit": commit,
}
