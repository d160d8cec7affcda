"""Drawn ops: single ops of a space, each choice made by drawn integers.

``workload`` decides the order of ops.
"""

from __future__ import annotations

from collections.abc import Callable

from models.ops import (
    BOUNDARIES,
    AdvanceClock,
    Crash,
    Damage,
    DeleteManually,
    LookMessage,
    Op,
    PlantFile,
    PullMessage,
    PutMessage,
    QueryMessage,
    RunService,
    SearchOffset,
    Shutdown,
    Survivors,
)
from models.program import Setup
from scenarios.space import (
    BLANK_SIZE_MIN,
    Space,
    TogetherKind,
    put_batch,
    put_message,
    record_overhead,
)
from scenarios.whereabouts import Whereabouts

BEYOND_THE_END = (0, 1, 8, 9, -1, 300)
"""Bytes of a record beyond the last place that its log file has for one."""


class OpDrawer:
    """Draws ops of one space for one store; a put is counted as if it were appended."""

    def __init__(self, space: Space, setup: Setup, draw: Callable[[], int]) -> None:
        self.space = space
        self.setup = setup
        self.log_file_size = setup.log_file_size
        self.body_size_max = setup.max_message_size
        self.whereabouts = Whereabouts(setup)
        self.draw = draw

    def _put(self, times: int = 1) -> Op:
        space, draw = self.space, self.draw
        address = space.addresses[draw() % len(space.addresses)]
        size = space.sizes[draw() % len(space.sizes)]
        label = space.labels[draw() % len(space.labels)]
        put = put_message(self.log_file_size, address, size, label)
        overhead = record_overhead(address.topic, label)
        self.whereabouts.put(address, overhead + put.body_size, times)
        return put

    def _put_at_the_end(self) -> Op:
        """A put that just fits its log file, that just does not, or of any size."""
        space, draw = self.space, self.draw
        address = space.addresses[draw() % len(space.addresses)]
        label = space.labels[draw() % len(space.labels)]
        beyond = BEYOND_THE_END[draw() % len(BEYOND_THE_END)]
        overhead = record_overhead(address.topic, label)
        body_size = self.whereabouts.left_for_a_record + beyond - overhead
        is_too_large = overhead + body_size + BLANK_SIZE_MIN > self.log_file_size
        if is_too_large or not 0 <= body_size <= self.body_size_max:
            return self._put()
        self.whereabouts.put(address, overhead + body_size, 1)
        return PutMessage(address.topic, address.queue_id, body_size, *label)

    def _batch(self) -> Op:
        space, draw = self.space, self.draw
        count = space.batch_counts[draw() % len(space.batch_counts)]
        sizes = [space.sizes[draw() % len(space.sizes)] for _ in range(count)]
        return put_batch(
            self.log_file_size,
            space.addresses[draw() % len(space.addresses)],
            tuple(sizes),
            space.labels[draw() % len(space.labels)],
        )

    def _pulled(self) -> Op:
        space, draw = self.space, self.draw
        address = space.addresses[draw() % len(space.addresses)]
        offset = space.pull_offsets.choose(draw())
        if draw() & 1:  # counted from the queue's end
            offset = max(0, self.whereabouts.counts[address] - offset)
        count = space.pull_counts[draw() % len(space.pull_counts)]
        tags = space.pull_tags
        # One draw the less where there is no choice.
        chosen = tags[draw() % len(tags)] if len(tags) > 1 else tags[0]
        return PullMessage(*address, offset, count, chosen)

    def _searched(self) -> Op:
        space, draw = self.space, self.draw
        address = space.addresses[draw() % len(space.addresses)]
        at_ms = space.search_times_ms.choose(draw())
        boundary = BOUNDARIES[draw() % len(BOUNDARIES)]
        return SearchOffset(*address, at_ms, boundary)

    def _query(self) -> Op:
        space, draw = self.space, self.draw
        return QueryMessage(
            space.addresses[draw() % len(space.addresses)].topic,
            space.query_keys[draw() % len(space.query_keys)],
            space.query_counts[draw() % len(space.query_counts)],
            *space.query_times_ms[draw() % len(space.query_times_ms)],
        )

    def _service(self) -> Op:
        space, draw = self.space, self.draw
        service = space.services[draw() % len(space.services)]
        return RunService(
            service, space.service_times[draw() % len(space.service_times)]
        )

    def _round(self) -> Op:
        return RunService(self.space.services[self.draw() % len(self.space.services)])

    def _crash_event(self) -> Crash:
        space, draw = self.space, self.draw
        kind = space.crash_kinds[draw() % len(space.crash_kinds)]
        cut = space.cuts.choose(draw())
        if kind == "process_kill":
            return Crash(kind, cut=cut)
        survivor_kind = space.survivor_kinds[draw() % len(space.survivor_kinds)]
        if survivor_kind in ("none", "all"):
            return Crash(kind, Survivors(survivor_kind), cut)
        number = space.survivor_numbers.choose(draw())
        return Crash(kind, Survivors(survivor_kind, number), cut)

    def _part(self, kind: TogetherKind) -> Op:
        match kind:
            case "put":
                return self._put()
            case "batch":
                return self._batch()
            case "pull":
                return self._pulled()
            case "look":
                return LookMessage(self.space.look_offsets.choose(self.draw()))
            case "search":
                return self._searched()
            case "query":
                return self._query()
            case "service":
                return self._service()
            case "wait":
                return AdvanceClock(self.space.stalls_ms.choose(self.draw()))
            case "delete":
                return DeleteManually()
            case "shutdown":
                return Shutdown()

    def _damaged_file(self) -> Damage | PlantFile:
        space, draw = self.space, self.draw
        if space.plants and draw() & 1:
            return space.plants[draw() % len(space.plants)]
        file, kind = space.damage_targets[draw() % len(space.damage_targets)]
        if kind == "delete":
            return Damage(file, kind)
        if kind == "touch":
            return Damage(file, kind, space.touch_ages_ms.choose(draw()))
        at = space.damage_offsets.choose(draw())
        if kind == "truncate":
            return Damage(file, kind, at)
        size = space.damage_sizes[draw() % len(space.damage_sizes)]
        if draw() & 3:
            at, width = self.whereabouts.place_of(file, at, draw)
            size = width or size
        return Damage(file, kind, at, size)
