"""A setup says what a store comes to; the configuration asks in its own way."""

from __future__ import annotations

import pytest

from crashmq.harness.subjects.engine_config import config_of
from crashmq.models.program import Setup


def test_the_engine_delays_as_the_laws_are_told() -> None:
    for text in ("2s 1m 0s 3d", Setup().message_delay_level):
        setup = Setup(message_delay_level=text)

        assert config_of(setup).delay_levels.delays_ms == setup.delay_levels.delays_ms


@pytest.mark.parametrize("units", [1, 2, 10, 250])
def test_a_queue_file_of_so_many_units_is_what_the_store_rounds_up_to(
    units: int,
) -> None:
    config = config_of(Setup(queue_file_units=units))

    assert config.queue_file_size == units * 20
    assert config.mapped_file_size_consume_queue < units * 20 or units == 1
