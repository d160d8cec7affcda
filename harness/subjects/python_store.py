"""PythonStore: our engine, in this process, on a simulated disk, run by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

from crashmq.engine.host.service import Service
from crashmq.engine.store.errors import StoreError, StoreStopped, SystemTopic
from crashmq.engine.store.message.message_batch import InnerMessage, encode_batch
from crashmq.engine.store.message.message_encoder import MessageRejected
from crashmq.engine.store.message_store import MessageStore
from crashmq.engine.store.time_search import BoundaryType
from crashmq.harness.disk.controls import Healed
from crashmq.harness.disk.crash import StoreCrashed
from crashmq.harness.disk.profiles import PROFILES
from crashmq.harness.disk.sim_disk import DiskSnapshot, SimDisk
from crashmq.harness.scheduling.sim_runtime import Deadlock, SimRuntime
from crashmq.harness.scheduling.turns import Turns
from crashmq.harness.subjects.brokers import Brokers
from crashmq.harness.subjects.callers import Callers
from crashmq.harness.subjects.capabilities import PutOfBroker, RoundOfHost
from crashmq.harness.subjects.clients import Clients
from crashmq.harness.subjects.consumers import Consumers
from crashmq.harness.subjects.damage import Damages, plant, selected
from crashmq.harness.subjects.engine_config import Configured, epoch_of, place_found
from crashmq.harness.subjects.engine_messages import (
    answer_of,
    bit_map_of,
    flawed,
    message_of,
)
from crashmq.harness.subjects.one_at_a_time import ObservedRounds, OneAtATime, just_turn
from crashmq.harness.subjects.removals import (
    CHECKPOINT_PATH,
    checkpoint_written,
    taken_away,
)
from crashmq.models.history import CheckpointWritten, Happening, TakenAway
from crashmq.models.messages import MessageToPut
from crashmq.models.observations import (
    DOWN,
    PULL_STATUSES,
    PUT_STATUSES,
    BrokerPulled,
    ClockMoved,
    Damaged,
    Deleted,
    DiskFilled,
    Done,
    EndAwaited,
    Failed,
    HalfMade,
    LogConfirmed,
    Looked,
    Observation,
    Positions,
    Pulled,
    Put,
    Queried,
    Ran,
    Refused,
    Searched,
    Skipped,
    Started,
    Statistics,
    Stopped,
    TopicsCleaned,
)
from crashmq.models.ops import (
    AskBroker,
    Boundary,
    ChangeConfig,
    ChangeTopic,
    ConfigureGroup,
    Consume,
    ConsumerEnd,
    ConsumerTask,
    Crash,
    Damage,
    DiskFault,
    ExpressionType,
    FaultCall,
    FromWhere,
    PlantFile,
    PullThroughBroker,
    ResetTarget,
    Resubscribe,
    ServiceName,
    StartConsumer,
)
from crashmq.models.program import Setup

OP_ACTIONS_MAX = 300_000  # the busiest op of an episode makes some hundreds
OP_READS_MAX = 1_000_000


class StoppedInVain(Exception):
    """A stop of a store that never started did something, or said that it had."""


class PythonStore:
    """The engine as a subject; a new ``MessageStore`` for each of its lives."""

    name = "python"

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._configured = Configured(setup)
        profile, capacity = PROFILES[setup.disk_profile], setup.disk_capacity
        runtime = SimRuntime(epoch_of(setup))
        self._be_down(runtime, SimDisk(profile, capacity=capacity))
        place_found(self.disk, setup)

    def _be_down(self, runtime: SimRuntime, disk: SimDisk) -> None:
        self._runtime = runtime
        self.epoch_ms = epoch_of(self.setup)
        self.now_ms: Callable[[], int] = runtime.now_ms
        self.disk = disk
        disk.keep_time_by(runtime.now_ms)
        self._store: MessageStore | None = None
        self._brokers = Brokers()
        self._consumers: Consumers | None = None
        self._clients = Clients(self.setup, runtime)
        self._services: dict[str, Service] = {}
        self._callers = Callers()
        self._left_by_start: tuple[str, ...] = ()
        self._late_actions = 0
        self._damages = Damages()
        self._turned: RoundOfHost = just_turn

    @property
    def clock(self) -> tuple[int, int]:
        """The wall clock, and the monotonic clock of the time-outs, in milliseconds."""
        return self._runtime.now_ms(), self._runtime.elapsed_ms

    @property
    def client_disks(self) -> Mapping[str, DiskSnapshot]:
        """The disks of the machines that consumers ran on, by client."""
        return self._clients.machines.disks

    def down_on(
        self,
        disk: SimDisk,
        clock: tuple[int, int],
        client_disks: Mapping[str, DiskSnapshot],
        configured: Setup,
    ) -> PythonStore:
        """Another store, ``configured`` so, not started, on ``disk`` at ``clock``."""
        other = PythonStore.__new__(PythonStore)
        is_as_mine = configured is self._configured.setup
        other._configured = self._configured if is_as_mine else Configured(configured)
        other.setup = self.setup
        other._be_down(SimRuntime(*clock), disk)
        other._clients.machines.find_disks(client_disks)
        return other

    def layout(self) -> Literal["rocketmq"]:
        """Files, records and refusals are RocketMQ's."""
        return "rocketmq"

    def begins_with(self) -> str:
        """Which directory its first start finds."""
        return self.setup.begins_with

    @property
    def is_up(self) -> bool:
        """Whether the store is started."""
        return self._store is not None

    def put(self, message: MessageToPut) -> Observation:
        """Store one message; returns a ``Put``."""
        store = self._store
        if store is None:
            return _SKIPPED_DOWN
        told = message_of(message, message.body, message.properties)
        put = partial(store.put_message, told)
        return answer_of(self._brokers.put_of_client(message.topic, put))

    def put_batch(self, messages: Sequence[MessageToPut]) -> Observation:
        """Store several messages as one batch; returns a ``Put``."""
        store = self._store
        if store is None:
            return _SKIPPED_DOWN
        if not messages:
            return Put("MESSAGE_ILLEGAL")
        inner = [
            InnerMessage(
                message.body,
                {},
                message.flag,
                message.own_properties,
            )
            for message in messages
        ]
        waits = {} if messages[0].wait_store_ok else {"WAIT": "false"}
        try:
            body = encode_batch(inner)
        except MessageRejected as rejected:
            return Put(PUT_STATUSES[rejected.status.value])
        told = message_of(messages[0], flawed(body, messages), waits)
        put = partial(store.put_messages, told)
        return answer_of(self._brokers.put_of_client(messages[0].topic, put))

    def pull(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_msg_nums: int,
        tags: str,
    ) -> Observation:
        """Read one queue."""
        store = self._store
        if store is None:
            return _SKIPPED_DOWN
        try:
            result = store.get_message(
                topic, queue_id, queue_offset, max_msg_nums, tags
            )
        except StoreStopped:
            return _SKIPPED_STOPPING
        return Pulled(
            PULL_STATUSES[result.status.value],
            result.next_begin_offset,
            result.min_offset,
            result.max_offset,
            result.messages,
        )

    def look(self, phy_offset: int) -> Observation:
        """Read the record at a phy_offset."""
        if self._store is None:
            return _SKIPPED_DOWN
        try:
            return Looked(self._store.look_message_by_offset(phy_offset))
        except StoreStopped:
            return _SKIPPED_STOPPING

    def search(
        self, topic: str, queue_id: int, at_ms: int, boundary: Boundary
    ) -> Observation:
        """Search a queue by time."""
        if self._store is None:
            return _SKIPPED_DOWN
        try:
            found = self._store.get_offset_in_queue_by_time(
                topic, queue_id, self.epoch_ms + at_ms, BoundaryType[boundary]
            )
            stored_at = self._store.get_message_store_timestamp(topic, queue_id, found)
            earliest = self._store.get_earliest_message_time()
        except StoreStopped:
            return _SKIPPED_STOPPING
        return Searched(found, stored_at, earliest)

    def query(
        self, topic: str, key: str, max_num: int, begin_ms: int, end_ms: int
    ) -> Observation:
        """Read the messages with a key."""
        store = self._store
        if store is None:
            return _SKIPPED_DOWN
        if not self.setup.has_index:
            return Skipped("the store keeps no index")
        begin, end = self.epoch_ms + begin_ms, self.epoch_ms + end_ms
        try:
            result = store.query_message(topic, key, max_num, begin, end)
        except StoreStopped:
            return _SKIPPED_STOPPING
        return Queried(result.messages)

    def run_service(self, service: ServiceName, times: int) -> Observation:
        """Run a service for some rounds, fewer once it is idle; returns a ``Ran``."""
        if self._store is None:
            return _SKIPPED_DOWN
        if service.startswith("clean_") and not self.setup.cleans:
            return Skipped("this store deletes nothing")
        turned = self._turned_alone(service)
        if turned is None:
            return Skipped(f"the store has no service {service}")
        work = 0
        for _ in range(times):
            done = turned.run_once()
            work += done
            if not done:
                break
        return Ran(work)

    def advance_clock(self, ms: int) -> Observation:
        """Move the clock."""
        self._runtime.advance(ms)
        return ClockMoved(self._runtime.now_ms())

    def stall(self, ms: int) -> Observation:
        """Stall the op in progress, and let others run."""
        self._runtime.sleep_ms(ms)
        return ClockMoved(self._runtime.now_ms())

    def delete_manually(self) -> Observation:
        """Ask the cleaner to delete expired files in its next rounds."""
        if self._store is None:
            return _SKIPPED_DOWN
        self._store.deletion.execute_delete_files_manually()
        return Done()

    def delete_topic(self, topic: str, queue_id: int) -> Observation:
        """Delete a topic, or one queue of it."""
        store = self._store
        if store is None:
            return _SKIPPED_DOWN
        consumers = self._consumers
        try:
            if consumers is not None:
                count = consumers.delete_topic(topic, queue_id)
            elif queue_id < 0:
                count = store.delete_topics((topic,))
            else:
                count = store.delete_queue(topic, queue_id)
        except (StoreStopped, SystemTopic) as refused:
            return Skipped(str(refused))
        deleted = store.deleted_topics
        return Deleted(deleted.dead_below(topic, queue_id) if count else -1)

    def clean_topics(self, retained: Sequence[str]) -> Observation:
        """Delete all topics but ``retained``."""
        store = self._store
        if store is None:
            return _SKIPPED_DOWN
        if self._consumers is not None:
            return Skipped("its broker knows which topics are in use")
        dead = store.deleted_topics.dead_topics
        try:
            count = store.clean_unused_topic(retained)
        except StoreStopped as stopped:
            return Skipped(str(stopped))
        now = store.deleted_topics.dead_topics
        rows = [(name, at) for name, at in now.items() if dead.get(name) != at]
        return TopicsCleaned(count, tuple(sorted(rows)))

    def commit_offset(
        self, group: str, topic: str, queue_id: int, offset: int
    ) -> Observation:
        """Let a consumer's offset store set its offset and send it."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        return self._consumers.commit_offset(group, topic, queue_id, offset)

    def query_offset(self, group: str, topic: str, queue_id: int) -> Observation:
        """The offset of a group on a queue."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        return self._consumers.query_offset(group, topic, queue_id)

    def reset_offset(
        self, group: str, topic: str, queue_id: int, offset: int, to: ResetTarget
    ) -> Observation:
        """Reset a group's offset at the broker."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        return self._consumers.reset_offset(group, topic, queue_id, offset, to)

    def take_queue(
        self, group: str, topic: str, queue_id: int, where: FromWhere, at_ms: int
    ) -> Observation:
        """Let a consumer begin with a queue assigned to it."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        since = self.epoch_ms + at_ms
        return self._consumers.take_queue(group, topic, queue_id, where, since)

    def delete_group(self, group: str) -> Observation:
        """Delete a group with its offsets."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        return self._consumers.delete_group(group)

    def configure_group(self, config: ConfigureGroup) -> Observation:
        """Set a group's configuration at the broker."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        return self._consumers.configure_group(config, self._configured.setup)

    def send_message(
        self,
        message: MessageToPut,
        max_reconsume_times: int,
        asks_queues: int,
        put: PutOfBroker,
    ) -> Observation:
        """Let a producer send a message through the broker."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        sent = message_of(message, message.body, message.properties)
        return self._brokers.send(sent, max_reconsume_times, asks_queues, put)

    def clone_offset(self, group: str, target: str, topic: str) -> Observation:
        """Copy a group's offsets on a topic to another group."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        return self._consumers.clone_offset(group, target, topic)

    def query_lowest_offsets(self, group: str, topic: str) -> Observation:
        """The lowest offset on each queue of a topic, of all groups but one."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        return self._consumers.query_lowest_offsets(group, topic)

    def clean_offsets(self, topic: str) -> Observation:
        """Remove the offsets of all groups on a topic."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        return self._consumers.clean_offsets(topic)

    def change_topic(self, change: ChangeTopic) -> Observation:
        """Create or change a topic at the broker."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        return self._consumers.change_topic(change)

    def ask_broker(self, ask: AskBroker) -> Observation:
        """Answer an administrator's question."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        return self._consumers.ask(ask, self.setup)

    def pull_through_broker(
        self,
        pull: PullThroughBroker,
        begins: Callable[[int], None],
        answer: Callable[[BrokerPulled], None],
    ) -> Observation:
        """Let a consumer pull a queue, which the broker answers at once or later."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        return self._consumers.pull(pull, begins, answer)

    def offsets(self) -> tuple[tuple[tuple[str, str, int], int], ...] | None:
        """The offset of every group, topic and queue_id, sorted."""
        return self._consumers.offsets() if self._consumers is not None else None

    def tell_consumers_to(self, note: Callable[[Happening], None]) -> None:
        """From now on call ``note`` with each event of a consumer."""
        self._clients.note = note

    def start_consumer(self, op: StartConsumer) -> Observation:
        """Start a client's consumer."""
        return self._clients.start(op) if self._has_clients else _SKIPPED_NO_PROGRESS

    def resubscribe(self, op: Resubscribe) -> Observation:
        """Change the subscription of a client's consumer."""
        return self._clients.resubscribe(op)

    def end_consumer(self, client: str, how: ConsumerEnd) -> Observation:
        """End a client's consumer."""
        return self._clients.end(client, how)

    def turn_consumer(
        self, client: str, task: ConsumerTask, times: int, lost: int
    ) -> Observation:
        """Do some rounds of one of its tasks."""
        return self._clients.turn(client, task, times, lost)

    def consume(self, op: Consume) -> Observation:
        """Let it work on messages that wait."""
        return self._clients.consume(op)

    def tell_reset(
        self, client: str, topic: str, queue_id: int, offset: int
    ) -> Observation:
        """Let the broker tell it to begin a queue at an offset."""
        return self._clients.tell_reset(client, topic, queue_id, offset)

    @property
    def _has_clients(self) -> bool:
        return self.setup.keeps_progress

    def subscribe(
        self,
        group: str,
        topic: str,
        expression: str,
        expression_type: ExpressionType,
        version: int,
    ) -> Observation:
        """Register what a group's client subscribes."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        return self._consumers.subscribers.subscribe(
            group, topic, expression, expression_type, version
        )

    def unsubscribe(self, group: str) -> Observation:
        """Record that a group's client is gone."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        return self._consumers.subscribers.unsubscribe(group)

    def pull_filtered(
        self,
        group: str,
        topic: str,
        queue_id: int,
        queue_offset: int,
        max_msg_nums: int,
    ) -> Observation:
        """Read one queue with the filter of a group's subscription."""
        if self._consumers is None:
            return _SKIPPED_NO_PROGRESS
        return self._consumers.subscribers.pull_filtered(
            group, topic, queue_id, queue_offset, max_msg_nums
        )

    def filters(self) -> tuple[tuple[tuple[str, str], tuple[str, int]], ...] | None:
        """By group and topic the expression and its version, sorted."""
        consumers = self._consumers
        return None if consumers is None else consumers.subscribers.filters()

    def confirm_log(self, behind: int) -> Observation:
        """Set how far replicas have the log."""
        if self._store is None:
            return _SKIPPED_DOWN
        if not self.setup.duplicates:
            return Skipped("this store waits for no replicas")
        phy_offset = max(0, self._store.commit_log.max_offset - behind)
        self._store.set_confirm_offset(phy_offset)
        return LogConfirmed(phy_offset)

    def fill_disk(self, percent: int) -> Observation:
        """Let a foreign file fill the disk."""
        if not self.setup.disk_capacity:
            return Skipped("the disk has no end")
        self.disk.fill(percent)
        return DiskFilled(*self.disk.usage())

    def disk_usage(self) -> tuple[int, int, int]:
        """Bytes in use, foreign files included, and the capacity; 0: no limit.

        And how many calls the disk has refused because it was full.
        """
        if not self.setup.disk_capacity:
            return 0, 0, 0
        return *self.disk.usage(), self.disk.full_calls

    def mtime_ms(self, path: str) -> int:
        """The mtime of a file."""
        return self.disk.mtimes()[path]

    def shutdown(self) -> Observation:
        """Shut the store down; returns a ``Stopped``."""
        store = self._store
        if store is None:
            return _SKIPPED_DOWN
        hosted = self._brokers.broker or store
        if not hosted.is_started:
            return EndAwaited(hosted.shutdown())
        try:
            try:
                clean = hosted.shutdown()
            except OSError:
                self._callers.wait_for_the_others(self._runtime)
                raise
            self._callers.wait_for_the_others(self._runtime)
            return Stopped(clean, self.disk.unsynced(), self.disk.left_open())
        finally:
            self._late_actions = self.disk.late_actions()
            self._end_life()

    def start(self) -> Observation:
        """Load, recover and start."""
        if self._store is not None:
            return Skipped("the store is up")
        setup, mount = self._configured.setup, self.disk.mount()
        try:
            store = MessageStore(self._configured.config, mount, self._runtime)
            broker = self._brokers.around(setup, store, mount, self._runtime)
        except ValueError as refusal:
            self._left_by_start = self.disk.left_open()
            self.disk.unmount()
            if setup.is_usable:
                raise
            return Refused(str(refusal))
        hosted = broker or store
        if self.setup.has_queue_ext and not self.setup.filters:
            store.calc_bit_map(bit_map_of)
        damages, self._damages = self._damages, Damages()
        try:
            hosted.load()
            hosted.start()
        except StoreError as refusal:
            self._damages = damages  # it has changed nothing
            self._stop_in_vain(hosted.shutdown)
            return Refused(str(refusal), refusal.path)
        except OSError:
            self._stop_in_vain(hosted.shutdown)
            raise
        else:
            self._store, self._brokers.broker = store, broker
            if broker is not None and self.setup.keeps_progress:
                self._consumers = Consumers(broker, self._runtime)
                self._clients.listen_to(broker)
        finally:
            if self._store is None:
                self._left_by_start = self.disk.left_open()
                self.disk.unmount()
        self._services = {service.name: service for service in hosted.services}
        answering = [self._turned_alone(service.name) for service in store.waited_for]
        self._runtime.serve(
            [ObservedRounds(one, self._turned) for one in answering if one is not None]
        )
        damaged = tuple([(at.start, at.end) for at in store.damaged_ranges])
        return Started(store.last_exit_ok, store.commit_log.scanned_bytes, damaged)

    def _stop_in_vain(self, stop: Callable[[], bool]) -> None:
        """Stop a store whose start has failed, as its host does in a ``finally``.

        Raises:
            StoppedInVain: it does something, or says that it has ended in order.
        """
        actions = self.disk.actions
        clean = stop()
        if clean or self.disk.actions > actions:
            did = self.disk.actions - actions
            raise StoppedInVain(
                f"the stop of a store that never started returns {clean} and makes "
                f"{did} disk actions; it must return False and make none."
            )

    def tell_deliveries(self, put: PutOfBroker) -> None:
        """From now on call ``put`` for each put that the broker itself makes."""
        self._brokers.put = put

    def tell_rounds(self, turned: RoundOfHost) -> None:
        """From now on let ``turned`` run each round that the host starts by itself."""
        self._turned = turned

    def delays(self) -> tuple[tuple[int, int], ...] | None:
        """For each level, the queue_offset of the next message to deliver, sorted."""
        return self._brokers.delays()

    def _turned_alone(self, name: str) -> Service | None:
        """A service whose rounds do not overlap; None if there is none."""
        service = self._services.get(name)
        if service is not None and not isinstance(service, OneAtATime):
            service = self._services[name] = OneAtATime(service, self._runtime)
        return service

    def open_beside(self) -> Observation:
        """Load the directory by another store; ``Refused`` is right."""
        if self._store is None:
            return _SKIPPED_DOWN
        try:
            config = self._configured.config
            MessageStore(config, self.disk.beside(), self._runtime).load()
        except StoreError as refusal:
            return Refused(str(refusal))
        return Started(last_exit_ok=False)

    def _end_life(self) -> None:
        self._store = self._consumers = None
        self._brokers.broker = self._clients.broker = None
        self._services = {}
        self._runtime.serve(())
        self.disk.unmount()

    @property
    def _is_in_use(self) -> bool:
        """Whether the store is up, or about to start: then its files are its own."""
        return self._store is not None or self.disk.has_life

    def change_config(self, change: ChangeConfig) -> Observation:
        """Use another value of an option from the next start on."""
        if self._is_in_use:
            return Skipped("the store is up")
        self._configured = Configured(self._configured.setup.changed(change))
        return Done()

    def damage(self, damage: Damage) -> Observation:
        """Change a file while the store is down."""
        if self._is_in_use:
            return Skipped("the store is up")
        if damage.kind == "touch":
            return self._touch(selected(self.disk.files(), damage.file), damage.at)
        return self._damages.do(self.disk, damage)

    def plant(self, op: PlantFile) -> Observation:
        """Put a foreign file into the store while it is down."""
        if self._is_in_use:
            return Skipped("the store is up")
        return plant(self.disk, op)

    def _touch(self, path: str | None, age_ms: int) -> Observation:
        if path is None:
            return Skipped("no such file to touch")
        self.disk.set_mtime(path, self.now_ms() - age_ms)
        return Done()

    def run(self, body: Callable[[], Observation]) -> Observation:
        """Run one call to its end; an unexpected exception is returned as a ``Failed``.

        A call that uses more actions or reads than any should is ended by ``Hang``.
        """
        self.disk.allow(OP_ACTIONS_MAX, OP_READS_MAX)
        try:
            return self._runtime.run(body)
        except (OSError, StoreStopped, Deadlock) as error:
            return Failed(type(error).__name__, str(error))

    def interleave(self, body: Callable[[], Observation]) -> Callable[[], Observation]:
        """Begin a second activity now; the callable waits for its observation."""
        return self._runtime.spawn(body).result

    def together(
        self, bodies: Sequence[tuple[str, Callable[[], Observation]]], turns: Turns
    ) -> list[Observation]:
        """Run bodies at the same time, each a caller of the store."""
        called = [(name, partial(self._callers.call, body)) for name, body in bodies]
        self._callers.come(len(bodies))
        self.disk.pause_by(self._runtime.pause)
        try:
            return self._runtime.together(called, turns)
        finally:
            self.disk.pause_by(None)
            self._callers.come(0)

    def on_action(self, at_action: int, cut: int, event: Callable[[], None]) -> None:
        """Let ``event`` happen at the n-th disk action from now."""
        self.disk.at_action(at_action, cut, event)

    def end_watch(self, event: Callable[[], None] | None = None) -> bool:
        """Remove the event, or the newest; return whether it had fired."""
        return self.disk.end_watch(event)

    def fail(self, fault: DiskFault) -> None:
        """Make calls to the disk fail."""
        self.disk.fail(fault)

    def unreadable(self) -> tuple[Damaged, ...]:
        """The sectors that cannot be read now."""
        return self.disk.unreadable()

    def take_faults_met(self) -> tuple[tuple[FaultCall, str], ...]:
        """The calls that met a fault since the last call of this, with their paths."""
        return self.disk.take_faults_met()

    def heal(self) -> Healed:
        """Disarm all disk faults.

        Returns how many calls they failed, and which synced bytes the medium lacks.
        """
        return self.disk.healed()

    def kill(self) -> None:
        """Kill the simulated process."""
        self.crash(Crash("process_kill"))

    def crash(self, crash: Crash) -> StoreCrashed:
        """End this life; returns the ``StoreCrashed`` for the call in progress."""
        end = self.disk.crash(crash)
        self._runtime.end_by(end)
        self._store = self._consumers = None
        self._brokers.broker = self._clients.broker = None
        self._services = {}
        self._runtime.serve(())
        return end

    def disk_actions(self) -> int:
        """Disk actions since the subject was made."""
        return self.disk.actions

    def last_action(self) -> str:
        """The newest disk action as ``kind:path``, kind as ``write`` or ``sync``."""
        return self.disk.last_action

    def files(self) -> Mapping[str, bytes]:
        """The files as a reader sees them now."""
        return self.disk.files()

    def left_by_start(self) -> tuple[str, ...]:
        """What a start that did not succeed still had open or locked."""
        left, self._left_by_start = self._left_by_start, ()
        return left

    def late_actions(self) -> int:
        """Disk actions after the last shutdown had released its lock."""
        return self._late_actions

    def unsynced_from(self) -> Mapping[str, int]:
        """The files that a power loss could change, with the first byte at risk."""
        return self.disk.unsynced_from()

    def tell_removals(self, note: Callable[[TakenAway], object]) -> None:
        """From now on ``note`` what is removed or renamed, right before it is done."""
        self.disk.on_taking(lambda verb, path: note(taken_away(self.disk, verb, path)))

    def tell_marks(self, note: Callable[[CheckpointWritten], object]) -> None:
        """From the next start on ``note`` each write to the checkpoint, before it."""
        self.disk.on_writing(
            CHECKPOINT_PATH,
            lambda at, data: note(checkpoint_written(self.disk, at, data)),
        )

    def half_made(self) -> HalfMade:
        """The files whose creation is not durable."""
        return self.disk.half_made()

    def positions(self) -> Positions:
        """The log's offsets."""
        if self._store is None:
            return DOWN
        store, log = self._store, self._store.commit_log
        return Positions(
            log.min_offset,
            log.max_offset,
            log.flushed_where,
            store.reput.reput_from_offset,
            log.committed_where,
            store.reput.confirm_offset,
            store.free_buffers,
        )

    def numbers(self) -> tuple[tuple[tuple[str, int], int], ...]:
        """The next queue_offset of each known queue."""
        return self._store.next_queue_offsets if self._store is not None else ()

    def statistics(self) -> Statistics:
        """The store's counts since it started."""
        if self._store is None:
            return Statistics()
        stats = self._store.stats
        by_topic = sorted(stats.put_by_topic.items())
        return Statistics(
            tuple((topic, *counts) for topic, counts in by_topic),
            tuple(stats.put_time_distribution),
        )

    def close(self) -> None:
        """End the current life, if there is one, and what waited to run for it."""
        self._end_life()
        self._runtime.close()


_SKIPPED_NO_PROGRESS = Skipped("the store keeps no progress")
_SKIPPED_DOWN = Skipped("the store is down")
_SKIPPED_STOPPING = Skipped("the store is stopping")
