from __future__ import annotations

import pytest
from store_builder import StoreBuilder


@pytest.fixture
def store() -> StoreBuilder:
    return StoreBuilder()
