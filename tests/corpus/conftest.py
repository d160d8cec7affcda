"""What tests of real directories share: RocketMQ's own JVMs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rocketmq import Brokers, MissingTool, require


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    try:
        require("java"), require("mvn")
    except MissingTool as missing:
        pytest.skip(str(missing))
    with Brokers() as kept:
        yield kept
