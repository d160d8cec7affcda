"""RecoveredEnds: where each queue ended when each life of the log began.

A crash may take the end of a log that consumers had read already. Then its queue
offsets are given again, to other messages, and a consumer that goes on where it was
would pass over these. Up to where a queue ended at a start every offset means what it
did before. So the log has lives, which are numbered: an answer about an offset has the
number, and a client says which life has told it last where it is. What it says holds up
to the lowest end of the lives that began since then.

A life ends with a crash, and only if it has told anybody anything since all that it has
was durable; so that is noted durably before the first answer, and taken back by a stop.
A start that nobody heard of leaves the file as it is.

Who says no life is believed up to where queues ended at the newest start; beyond that
only if it has asked since where to begin, or came from below.

RocketMQ has nothing of the kind: a surviving consumer skips what was written since
(``docs/sharp-edges.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TypeAlias

from crashmq.engine.common.config_file import ConfigFile
from crashmq.engine.common.fastjson import Json, JsonKey, pretty, read_json
from crashmq.engine.host.disk import Disk
from crashmq.engine.host.probe import probe
from crashmq.engine.host.runtime import Runtime
from crashmq.engine.store.errors import StoreStopped

PATH = "config/recoveredEnds.json"
ENDS_KEPT_MAX = 8
"""Ends of so many lives are kept of a queue; of older ones the lowest."""

STALE = probe(
    "recovered_ends.stale", "a consumer named an offset of an earlier life of the log"
)
LONG_AGO = probe(
    "recovered_ends.long_ago", "a consumer heard nothing of a whole life of its broker"
)

QueueKey: TypeAlias = tuple[str, int]
Ends: TypeAlias = tuple[tuple[int, int], ...]
"""Lives with the ends that they began with, both rising."""


class RecoveredEnds:
    """The ends of all queues at each start, and who has asked since the newest.

    Invariants:
        of each queue the ends rise with the lives
    """

    def __init__(self, disk: Disk, runtime: Runtime) -> None:
        self._file = ConfigFile(disk, PATH, runtime)
        self._lock = runtime.lock()
        self.life = 1
        self._has_told = False
        self._has_ended = False
        self._ends: dict[QueueKey, Ends] = {}
        self._found: dict[QueueKey, int] = {}
        self._knowing: set[tuple[str, str, int]] = set()

    def _check(self) -> None:
        for ends in self._ends.values():
            rising = [*pairwise(ends)]
            assert all(one[0] < two[0] for one, two in rising), ends
            assert all(one[1] < two[1] for one, two in rising), ends

    def load(self) -> None:
        """Read of earlier lives; changes nothing on the disk.

        Raises:
            StoreCorrupted: there was a table, and no copy of it can be read.
        """
        found = self._file.load(_decode)
        if found is not None:
            self.life, self._has_told, self._ends = found

    def settle(self) -> None:
        """Make durable what was loaded, and remove what a killed life left of a write.

        Raises:
            OSError: the disk failed; another start does it.
        """
        self._file.settle()

    def begin(self, ends: Mapping[QueueKey, int], *, is_orderly: bool) -> None:
        """Go on with the newest life, or begin another one, durably.

        Args:
            ends: by topic and queue_id the next queue_offset that the start has found.
            is_orderly: nothing was lost since the broker was up.

        Raises:
            OSError: the disk failed; nobody may be answered.
        """
        with self._lock:
            self._knowing.clear()
            self._found = dict(ends)
            if is_orderly:
                if self._has_told:  # the stop could not take that back
                    self._become(self.life, self._ends, has_told=False)
                return
            now = {key: one for key, one in self._ends.items() if key in ends}
            life = self.life
            if self._has_told:
                life += 1
                # One of which nothing is known was not there when the last life began.
                unknown: Ends = ((self.life, 0),)
                for key, end in sorted(ends.items()):
                    now[key] = _with_end(now.get(key, unknown), life, end)
            else:
                for key, one in now.items():
                    if ends[key] < one[-1][1]:
                        now[key] = _with_end(one[:-1], life, ends[key])
            if (life, now) != (self.life, self._ends):
                self._become(life, now, has_told=False)

    def _become(self, life: int, ends: dict[QueueKey, Ends], *, has_told: bool) -> None:
        self._file.persist(_encode(life, ends, has_told=has_told))
        self.life, self._ends, self._has_told = life, ends, has_told

    def tell(self, client_id: str) -> int:
        """The number of this life, for an answer; 0: who asks does not say who it is.

        Raises:
            OSError: it could not be noted that the life has told somebody.
            StoreStopped: the broker stops.
        """
        if not client_id:
            return 0
        with self._lock:
            if self._has_ended:
                raise StoreStopped("the broker stops: it answers nobody any more.")
            if not self._has_told:
                self._become(self.life, self._ends, has_told=True)
            return self.life

    def end(self, flush: Callable[[], object]) -> None:
        """Answer nobody any more, and note that ``flush`` made all durable.

        Raises:
            OSError: the disk failed; the next start begins another life.
        """
        with self._lock:
            self._has_ended = True
            if self._has_told:
                flush()
                self._become(self.life, self._ends, has_told=False)

    def end_of(self, topic: str, queue_id: int, broker_life: int = 0) -> int:
        """Up to where in a queue what was told in a life holds still; 0: nowhere.

        Args:
            topic: of the queue.
            queue_id: of the queue.
            broker_life: the life; 0: whichever went on until the newest start.
        """
        if not broker_life:
            return self._found.get((topic, queue_id), 0)
        # One that never was is of a table that was lost.
        life = broker_life if broker_life <= self.life else 0
        for began, end in self._ends.get((topic, queue_id), ()):
            if began > life:
                return end
        return 0

    def knows(self, client_id: str, topic: str, queue_id: int) -> None:
        """Take note that a client knows where it is in a queue of this life."""
        with self._lock:
            self._knowing.add((client_id, topic, queue_id))

    def is_stale(
        self,
        client_id: str,
        topic: str,
        queue_id: int,
        offset: int,
        broker_life: int = 0,
    ) -> bool:
        """Whether a client names an offset that it cannot know from this life.

        Whoever does not say who it is, is believed.
        """
        if not client_id or offset <= self.end_of(topic, queue_id, broker_life):
            return False
        if broker_life:
            is_stale = broker_life != self.life
        else:
            with self._lock:
                is_stale = (client_id, topic, queue_id) not in self._knowing
        if is_stale:
            STALE.hit()
            if 0 < broker_life < self.life - 1:
                LONG_AGO.hit()
        return is_stale


def _with_end(known: Ends, life: int, end: int) -> Ends:
    """Ends with that of one life more; those that were not lower count no more."""
    lower = [one for one in known if one[1] < end]
    if len(lower) >= ENDS_KEPT_MAX:
        (_, lowest), (second, _), *others = lower
        lower = [(second, lowest), *others]
    return (*lower, (life, end))


def _encode(life: int, ends: Mapping[QueueKey, Ends], *, has_told: bool) -> str:
    table: dict[JsonKey, Json] = {}
    for topic, queue_id in sorted(ends):
        of_queue = ends[topic, queue_id]
        flat: list[Json] = [number for one in of_queue for number in one]
        table[f"{topic}@{queue_id}"] = flat
    return pretty({"ends": table, "hasTold": has_told, "life": life})


def _decode(text: str) -> tuple[int, bool, dict[QueueKey, Ends]]:
    """The newest life, whether it has told anybody, and the ends.

    Raises:
        ValueError: the text is not a whole table.
    """
    found = read_json(text)
    fields = found if isinstance(found, dict) else {}
    life, has_told, table = (fields.get(name) for name in ("life", "hasTold", "ends"))
    if not isinstance(life, int) or not isinstance(has_told, bool) or life < 1:
        raise ValueError("the lives of a log have a number, and have told or not")
    if not isinstance(table, dict):
        raise ValueError("the lives of a log have ends")
    return life, has_told, {_key_of(key): _ends_of(one) for key, one in table.items()}


def _key_of(key: JsonKey) -> QueueKey:
    topic, _, queue_id = f"{key}".rpartition("@")
    return topic, int(queue_id)


def _ends_of(flat: Json) -> Ends:
    listed = flat if isinstance(flat, list) else []
    numbers = [one for one in listed if isinstance(one, int)]
    if not numbers or numbers != flat or len(numbers) % 2:
        raise ValueError(f"{flat!r} are no lives with their ends")
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))
