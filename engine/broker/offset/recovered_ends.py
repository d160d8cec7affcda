"""RecoveredEnds: where each queue ended at each start after a crash.

A crash may take the end of a log that consumers have already read. The lost queue
offsets are then given to other messages, and a surviving consumer that goes on at its
old offset would skip these. Offsets below the end that a queue had at such a start are
unaffected. So the log has numbered *lives*: each answer about an offset carries the
number of the broker's present life, and a client sends the number that it last
received. An offset of an earlier life is valid up to the lowest end of all lives that
began since.

A new life begins after a crash, but only if the broker has answered any client since
its data was last completely durable. This is noted durably before the first answer, and
taken back by an orderly shutdown. A start after which no client was answered leaves the
file as it is.

A deleted topic takes its queue offsets with it as well. So a deletion begins a new life
too, in which the topic's queues have ended at 0, and all others have lost nothing.

A client that sends no life number is believed up to where queues ended at the newest
start; beyond that only if it has since asked where to begin, or came from a lower
offset.

RocketMQ has nothing of the kind: a surviving consumer skips what was written since
(``docs/sharp-edges.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import TypeAlias

from crashmq.engine.common.bean import number_of
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
REMOVED = probe(
    "recovered_ends.removed", "a deletion began another life of what it deleted"
)
LONG_AGO = probe(
    "recovered_ends.long_ago", "a consumer heard nothing of a whole life of its broker"
)

QueueKey: TypeAlias = tuple[str, int]
Ends: TypeAlias = tuple[tuple[int, int], ...]
"""Lives with the ends that they began with, both rising."""
_ANYWHERE = 1 << 62


class RecoveredEnds:
    """The ends of all queues by life, and the clients that asked in the newest one.

    Invariants:
        the ends of each queue rise with the lives
    """

    def __init__(self, disk: Disk, runtime: Runtime) -> None:
        self._file = ConfigFile(disk, PATH, runtime)
        self._lock = runtime.lock()
        self._removals = runtime.lock()
        self.life = 1
        self._crashed = 1  # the newest life that a crash has begun, or the first
        self._is_kept = False
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
        """Read the earlier lives; changes nothing on the disk.

        Raises:
            StoreCorrupted: there was a table, and no copy of it can be read.
        """
        found = self._file.load(_decode)
        self._is_kept = found is not None
        if found is not None:
            self.life, self._crashed, self._has_told, self._ends = found

    def settle(self) -> None:
        """Make durable what was loaded, and remove leftovers of an interrupted write.

        Raises:
            OSError: the disk failed; another start does it.
        """
        self._file.settle()

    def begin(self, ends: Mapping[QueueKey, int], *, is_orderly: bool) -> None:
        """Continue the newest life, or begin a new one, durably.

        Args:
            ends: by topic and queue_id the next queue_offset that the start has
                found.
            is_orderly: nothing was lost since the broker was up.

        Raises:
            OSError: the disk failed; no client may be answered.
        """
        with self._lock:
            self._knowing.clear()
            self._found = dict(ends)
            if is_orderly:
                if self._has_told:  # the stop could not take that back
                    self._become(self.life, self._ends, has_told=False)
                return
            life, crashed, now = self.life, self._crashed, dict(self._ends)
            if self._has_told:
                life = crashed = self.life + 1
                # One of which nothing is known was not there when a crash came last.
                unknown: Ends = ((self._crashed, 0),)
                now = {
                    key: _with_end(self._ends.get(key, unknown), life, end)
                    for key, end in sorted(ends.items())
                }
            else:
                for key, one in self._ends.items():
                    end = ends.get(key, 0)
                    if end < one[-1][1]:
                        now[key] = _with_end(one[:-1], one[-1][0], end)
            if (life, now) != (self.life, self._ends):
                self._crashed = crashed
                self._become(life, now, has_told=False)

    def _become(self, life: int, ends: dict[QueueKey, Ends], *, has_told: bool) -> None:
        self._persist(life, ends, has_told=has_told)
        self.life, self._ends, self._has_told = life, ends, has_told

    def _persist(
        self, life: int, ends: dict[QueueKey, Ends], *, has_told: bool
    ) -> None:
        self._file.persist(_encode(life, self._crashed, ends, has_told=has_told))
        self._is_kept = True

    def tell(self, client_id: str) -> int:
        """The number of this life, for an answer; 0 if the client has no id.

        Raises:
            OSError: it could not be noted that this life has answered a client.
            StoreStopped: the broker is shutting down.
        """
        if not client_id:
            return 0
        with self._lock:
            self._refuse_after_the_end()
            if not self._has_told:
                self._become(self.life, self._ends, has_told=True)
            return self.life

    def _refuse_after_the_end(self) -> None:
        if self._has_ended:
            raise StoreStopped(
                "the broker is shutting down and answers no more requests."
            )

    def end(self, flush: Callable[[], object]) -> None:
        """Stop answering, and note that ``flush`` has made everything durable.

        Raises:
            OSError: the disk failed; the next start begins another life.
        """
        with self._removals, self._lock:
            self._has_ended = True
            if self._has_told:
                flush()
                self._become(self.life, self._ends, has_told=False)

    @contextmanager
    def removal(self, queues: Iterable[QueueKey]) -> Iterator[None]:
        """Begin a new life, noted durably, before ``queues`` are deleted.

        If the context ends by an error, the old life continues: the queues may still
        exist. Answers given meanwhile carry the old life's number, and are not valid
        later.

        Raises:
            OSError: the disk failed; the context is not entered.
            StoreStopped: the broker is shutting down; likewise.
        """
        gone = sorted(queues)
        with self._removals:
            if not (gone and self._is_kept):  # nobody was ever told anything
                yield
                return
            with self._lock:
                self._refuse_after_the_end()
                life = self.life + 1
                ends = self._ends | dict.fromkeys(gone, ((life, 0),))
                self._persist(life, ends, has_told=True)
                self._has_told = True
            yield
            with self._lock:
                REMOVED.hit()
                self.life, self._ends = life, ends
                self._found |= dict.fromkeys(gone, 0)
                self._knowing = {one for one in self._knowing if one[1:] not in gone}

    def end_of(self, topic: str, queue_id: int, broker_life: int = 0) -> int:
        """The queue_offset up to which offsets of a life are still valid; 0: nowhere.

        If the queue has lost nothing since, that is far beyond its end.

        Args:
            topic: the topic of the queue.
            queue_id: the id of the queue.
            broker_life: the life; 0: the one that lasted until the newest start.
        """
        if not broker_life:
            return self._found.get((topic, queue_id), 0)
        # One that never was is of a table that was lost.
        life = broker_life if broker_life <= self.life else 0
        for began, end in self._ends.get((topic, queue_id), ()):
            if began > life:
                return end
        return _ANYWHERE if life >= self._crashed else 0

    def knows(self, client_id: str, topic: str, queue_id: int) -> None:
        """Record that a client knows its place in a queue of this life."""
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
        """Whether a client sends an offset that is not valid in this life.

        A client without an id is always believed.
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
    """Ends with that of one more life; ends that are not lower become irrelevant."""
    lower = [one for one in known if one[1] < end]
    if len(lower) >= ENDS_KEPT_MAX:
        (_, lowest), (second, _), *others = lower
        lower = [(second, lowest), *others]
    return (*lower, (life, end))


def _encode(
    life: int, crashed: int, ends: Mapping[QueueKey, Ends], *, has_told: bool
) -> str:
    table: dict[JsonKey, Json] = {}
    for topic, queue_id in sorted(ends):
        of_queue = ends[topic, queue_id]
        flat: list[Json] = [number for one in of_queue for number in one]
        table[f"{topic}@{queue_id}"] = flat
    return pretty(
        {"crashed": crashed, "ends": table, "hasTold": has_told, "life": life}
    )


def _decode(text: str) -> tuple[int, int, bool, dict[QueueKey, Ends]]:
    """The newest life, that of the newest crash, whether it has answered, and the ends.

    Raises:
        ValueError: the text is not a complete table.
    """
    found = read_json(text)
    fields = found if isinstance(found, dict) else {}
    life, has_told, table = (fields.get(name) for name in ("life", "hasTold", "ends"))
    if type(life) is not int or not 1 <= life < _ANYWHERE:
        raise ValueError("the lives of a log have a number")
    if not isinstance(has_told, bool):
        raise ValueError("a life of a log has told its number or not")
    if not isinstance(table, dict):
        raise ValueError("the lives of a log have ends")
    crashed = fields.get("crashed", life)
    if type(crashed) is not int or not 1 <= crashed <= life:
        raise ValueError("the life that a crash has begun is one of the lives")
    listed = {_key_of(key): _ends_of(one, life) for key, one in table.items()}
    return life, crashed, has_told, listed


def _key_of(key: JsonKey) -> QueueKey:
    topic, _, queue_id = f"{key}".rpartition("@")
    number = number_of(queue_id.removeprefix("-"))  # a deletion may name it
    return topic, -number if queue_id.startswith("-") else number


def _ends_of(flat: Json, life: int) -> Ends:
    """Lives up to ``life`` with their ends, both rising."""
    listed = flat if isinstance(flat, list) else []
    numbers = [one for one in listed if type(one) is int and one >= 0]
    lives, ends = numbers[::2], numbers[1::2]
    is_rising = all(one < two for of in (lives, ends) for one, two in pairwise(of))
    if not numbers or numbers != flat or len(lives) != len(ends) or not is_rising:
        raise ValueError(f"{flat!r} are no lives with their ends")
    if not 1 <= lives[0] <= lives[-1] <= life:
        raise ValueError(f"{flat!r} has lives that never were")
    return tuple(zip(lives, ends, strict=True))
