"""Ops and events in words, one line each, for timelines and reports."""

from __future__ import annotations

from typing import assert_never

from crashmq.models.limits import QUEUES_OF_A_TOPIC
from crashmq.models.ops import (
    ALL_TIME_MS,
    PROPERTY_END,
    RETRIED,
    SILENT,
    AdminOp,
    AdvanceClock,
    AskBroker,
    ChangeConfig,
    ChangeTopic,
    CleanOffsets,
    CleanTopics,
    CloneOffset,
    CommitOffset,
    ConfigureGroup,
    ConfirmLog,
    Consume,
    ConsumerOp,
    Crash,
    CrashKind,
    Damage,
    DamageKind,
    DeleteGroup,
    DeleteManually,
    DeleteTopic,
    DiskFault,
    During,
    EndConsumer,
    Event,
    FillDisk,
    FilterOp,
    GroupOp,
    KeptUnit,
    LookMessage,
    PlantFile,
    PullFiltered,
    PullMessage,
    PullThroughBroker,
    PutBatch,
    PutMessage,
    QueryLowestOffsets,
    QueryMessage,
    QueryOffset,
    QueueOp,
    ResetOffset,
    Restart,
    Resubscribe,
    RunService,
    Schedule,
    SearchOffset,
    SendMessage,
    Session,
    Shutdown,
    StartConsumer,
    Subscribe,
    Survivors,
    TakeQueue,
    TellReset,
    Together,
    TurnConsumer,
    Unsubscribe,
)


def describe(op: Event) -> str:
    """An op in one line of text."""
    match op:
        case PutMessage():
            return _describe_put(op)
        case PutBatch():
            return _describe_batch(op)
        case SendMessage():
            return _describe_send(op)
        case PullMessage():
            return _describe_pull(op)
        case LookMessage(phy_offset):
            return f"look at phy_offset {phy_offset}"
        case SearchOffset(topic, queue_id, at_ms, boundary):
            return f"search {topic}/{queue_id} for {boundary} of {at_ms:+d} ms"
        case QueryMessage(topic, key, max_num):
            return f"query {topic} for {key}, at most {max_num}{_describe_range(op)}"
        case RunService(service, times):
            return f"run {service}" + (f" x{times}" if times != 1 else "")
        case AdvanceClock(ms):
            return f"clock {ms:+d} ms"
        case DeleteManually():
            return "delete what has expired"
        case DeleteTopic(topic, queue_id):
            return f"delete topic {topic}" + (f"/{queue_id}" if queue_id >= 0 else "")
        case CommitOffset() | QueryOffset() | ResetOffset() | TakeQueue():
            return _describe_progress(op)
        case StartConsumer() | Resubscribe() | EndConsumer():
            return _describe_consumer(op)
        case TurnConsumer() | Consume() | TellReset():
            return _describe_consumer(op)
        case PullThroughBroker():
            return _describe_broker_pull(op)
        case Subscribe() | Unsubscribe() | PullFiltered():
            return _describe_filtering(op)
        case ConfirmLog(behind):
            left = f" but its newest {behind} B" if behind else ""
            return f"replicas have all of the log{left}"
        case DeleteGroup() | ConfigureGroup() | CloneOffset() | QueryLowestOffsets():
            return _describe_group(op)
        case CleanTopics() | CleanOffsets() | ChangeTopic() | AskBroker():
            return _describe_admin(op)
        case FillDisk(percent):
            return f"fill the disk to {percent} %" if percent else "free the disk"
        case ChangeConfig(option, value):
            return f"configure {option} = {value}"
        case Shutdown() | Restart():
            return type(op).__name__.lower()
        case During() | Session() | Together():
            return _describe_made_of_ops(op)
        case Damage(file, kind, at, size):
            return _describe_damage(file, kind, at, size)
        case PlantFile():
            return _describe_plant(op)
        case Crash(kind, survivors, cut):
            return _describe_crash(kind, survivors, cut)
        case DiskFault():
            return _describe_fault(op)
        case _:
            assert_never(op)


def _describe_made_of_ops(op: During | Session | Together) -> str:
    match op:
        case During(inner, at_action, event):
            return f"{describe(inner)}; at disk action {at_action}: {describe(event)}"
        case Session(ops):
            return f"({' then '.join(map(describe, ops))})"
        case Together(ops, schedule):
            told = "; ".join(map(describe, ops))
            return f"together, {describe_schedule(schedule)}: {told}"


def _describe_plant(op: PlantFile) -> str:
    what = {
        "copy": f"a copy of {op.source}",
        "directory": "a directory",
        "empty": "an empty file",
    }
    return f"put {what.get(op.content, f'{op.size} B of {op.content}')} at {op.path}"


def _describe_batch(op: PutBatch) -> str:
    said = {
        " tagged": op.tags,
        " with keys": op.keys,
        " with properties": op.properties,
        " for the light queues": op.multi_dispatch,
    }
    labels = ",".join([f"{name} {value}" for name, value in said.items() if value])
    if op.properties_end != PROPERTY_END:
        labels += f", properties ended by {op.properties_end!r}"
    labels += f", its body {op.cut} B too short" if op.cut else ""
    if op.wrong != "none":
        labels += f", the last one's length of its {op.wrong} off by {op.off_by}"
    waits = "" if op.wait_store_ok else ", not waiting for the flush"
    sizes = ", ".join(map(str, op.body_sizes))
    return f"put a batch of {sizes} B to {op.topic}/{op.queue_id}{labels}{waits}"


def _describe_pull(op: PullMessage) -> str:
    tagged = "" if op.tags == "*" else f" tagged {op.tags}"
    where = f"{op.topic}/{op.queue_id}{tagged}"
    return f"pull {where} from {op.queue_offset}, at most {op.max_msg_nums}"


def _describe_group(op: GroupOp) -> str:
    match op:
        case DeleteGroup(group):
            return f"delete group {group}"
        case ConfigureGroup(group, tries, minutes, may_consume, may_broadcast, again):
            told = f"configure group {group}: {tries} retries, {minutes} min a message"
            told += "" if may_consume else ", no consumption"
            told += "" if may_broadcast else ", no broadcast"
            return told + ("" if again else ", no retry queue")
        case CloneOffset(group, target, topic):
            return f"give {target} the offsets of {group} on {topic}"
        case QueryLowestOffsets(group, topic):
            return f"ask for the lowest offsets on {topic} of all groups but {group}"


def _describe_admin(op: CleanTopics | AdminOp) -> str:
    match op:
        case CleanTopics(retained):
            return f"delete all topics but {retained or 'none'}"
        case CleanOffsets(topic):
            return f"remove all offsets on {topic}"
        case ChangeTopic(topic, read_queues, write_queues, is_writeable):
            closed = "" if is_writeable else ", and takes no message"
            queues = f"{read_queues} queues to read and {write_queues} to write"
            return f"topic {topic} has {queues}{closed}"
        case AskBroker("topics_of_group", group):
            return f"ask for the topics of group {group}"
        case AskBroker("groups_of_topic", _, topic):
            return f"ask for the groups with offsets on {topic}"
        case AskBroker("subscribers", _, topic):
            return f"ask for the groups that subscribe {topic}"
        case AskBroker("pull_offset", group, topic, queue_id):
            return f"ask where {group} pulls {topic}/{queue_id} next"
        case AskBroker("time", _, topic, queue_id, at_ms):
            return f"ask for the offset in {topic}/{queue_id} at {at_ms:+d} ms"
        case AskBroker("group", group):
            return f"ask if group {group} is configured"
        case AskBroker("group_config", group):
            return f"ask how group {group} is configured"
        case AskBroker("topic_config", _, topic):
            return f"ask how topic {topic} is configured"
        case AskBroker(_, group, topic, queue_id, _, client):
            return f"ask if {client} of {group} has the lock of {topic}/{queue_id}"


def _describe_progress(op: QueueOp) -> str:
    where = f"{op.group} on {op.topic}/{op.queue_id}"
    match op:
        case CommitOffset():
            return f"commit {op.offset} of {where}"
        case QueryOffset():
            return f"ask for the offset of {where}"
        case ResetOffset():
            target = f"{op.offset}" if op.to == "offset" else "its end"
            if op.to == "time":
                target = f"its first message since +{op.offset} ms"
            return f"reset {where} to {target}"
        case TakeQueue():
            begin = f"its {op.where} offset"
            if op.where == "timestamp":
                begin = f"its first message since +{op.at_ms} ms"
            return f"a consumer takes over {where}, or begins at {begin}"


def _describe_consumer(op: ConsumerOp) -> str:
    client = f"consumer {op.client}"
    match op:
        case StartConsumer():
            kinds = [("orderly", op.is_orderly), ("broadcasting", op.broadcasts)]
            kind = "".join([f"{name} " for name, has in kinds if has])
            how = "" if op.strategy == "AVG" else f", by {op.strategy}"
            how += f" {op.listed}" if op.listed else ""
            how += f", {op.batch} messages at a time" if op.batch > 1 else ""
            most = op.max_reconsume_times
            how += f", max_reconsume_times {most}" if most != RETRIED else ""
            return (
                f"{kind}{client} of {op.group} joins for {_asked(op)} from the "
                f"{op.where} offset on{how}"
            )
        case Resubscribe():
            return f"{client} subscribes {_asked(op)} and nothing else"
        case EndConsumer():
            ends = {"stop": "stops", "kill": "is killed", "vanish": "vanishes"}
            return f"{client} {ends[op.how]}"
        case TurnConsumer():
            lost = f", answer {op.lost} is lost" if op.lost else ""
            times = f" x{op.times}" if op.times != 1 else ""
            return f"{client}: {op.task}{times}{lost}"
        case TellReset():
            return f"{client} is told to begin {op.topic}/{op.queue_id} at {op.offset}"
        case Consume():
            many = f" and {op.times - 1} more" if op.times != 1 else ""
            again = f", again {op.again}" if op.again else ""
            takes = f" after {op.takes_ms} ms" if op.takes_ms else ""
            result = f"{op.status}{takes}{again}"
            return f"{client} consumes message {op.nth}{many}: {result}"


def _asked(op: StartConsumer | Resubscribe) -> str:
    """The subscription in a few words."""
    if (op.expression, op.expression_type) == ("*", "TAG"):
        return op.topics
    return f"{op.topics} by {op.expression_type} {op.expression}"


def _describe_broker_pull(op: PullThroughBroker) -> str:
    how = "tagged" if op.expression_type == "TAG" else "where"
    tagged = "" if op.tags == "*" else f" {how} {op.tags}"
    commits = f", commits {op.commit_offset}" if op.commit_offset >= 0 else ""
    waits = "" if op.suspends else ", does not wait"
    lite = ", lite" if op.is_lite else ""
    return (
        f"{op.group} pulls {op.topic}/{op.queue_id}{tagged} from {op.queue_offset}, "
        f"at most {op.max_msg_nums}{commits}{waits}{lite}"
    )


def _describe_filtering(op: FilterOp | PullFiltered) -> str:
    match op:
        case Subscribe(group, topic, expression, kind, version):
            told = f" in version {version}" if version else ""
            return f"{group} subscribes {topic} by {kind} {expression}{told}"
        case Unsubscribe(group):
            return f"{group} is gone"
        case PullFiltered(group, topic, queue_id, queue_offset, most):
            where = f"{topic}/{queue_id} from {queue_offset}"
            return f"{group} pulls {where}, at most {most}"


def describe_schedule(schedule: Schedule) -> str:
    """A schedule in words."""
    lines = ", at any line" if schedule.grain == "lines" else ""
    if schedule.kind == "pct":
        drawn = f"{schedule.seed}, {schedule.depth} of {schedule.steps}"
        return f"by priorities ({drawn}){lines}"
    told = ", ".join(f"{who} from {point} on" for point, who in schedule.preemptions)
    return f"one after the other{lines}" if not told else f"{told}{lines}"


def _describe_range(op: QueryMessage) -> str:
    if (op.begin_ms, op.end_ms) == (-ALL_TIME_MS, ALL_TIME_MS):
        return ""
    return f", stored from {op.begin_ms} to {op.end_ms} ms"


def _describe_send(op: SendMessage) -> str:
    most = op.max_reconsume_times
    bounded = f", max_reconsume_times {most}" if most >= 0 else ""
    is_usual = op.asks_queues == QUEUES_OF_A_TOPIC
    shaped = "" if is_usual else f", with {op.asks_queues} queues for a new topic"
    return f"send {_describe_put(op.put).removeprefix('put ')}{bounded}{shaped}"


def _describe_put(op: PutMessage) -> str:
    kind = "" if op.transaction == "none" else f"{op.transaction} message of "
    parts = [f"put {kind}{op.body_size} B to {op.topic}/{op.queue_id}"]
    if op.tags:
        parts.append(f" tagged {op.tags}")
    if op.properties:
        parts.append(f" with {op.properties}")
    if op.multi_dispatch:
        parts.append(f", listed in {op.multi_dispatch} too")
    if op.delay_level:
        parts.append(f", delayed by level {op.delay_level}")
    if op.ipv6 != "none":
        hosts = "both hosts" if op.ipv6 == "both" else f"{op.ipv6} host"
        parts.append(f", {hosts} IPv6")
    numbers = ("flag", "sys_flag", "reconsume_times")
    parts += [f", {name} {getattr(op, name)}" for name in numbers if getattr(op, name)]
    if not op.wait_store_ok:
        parts.append(", not waiting for the flush")
    return "".join(parts)


def _describe_fault(fault: DiskFault) -> str:
    if fault.call == "evict":
        return "clean pages leave memory"
    if fault.call in SILENT:
        how = "lost" if fault.call == "lose" else f"misdirected by {fault.written}"
        pages = "all pages" if fault.lasts else f"{fault.times} pages"
        return f"{pages} of {fault.path or 'any file'} after {fault.after} {how}"
    where = f" of {fault.path}" if fault.path else ""
    how_often = f" x{fault.times}" if fault.times != 1 else ""
    after = f" after {fault.after}" if fault.after else ""
    part = f", {fault.written} B of it done" if fault.written else ""
    lasts = " from then on" if fault.lasts else how_often
    kept = fault.survivors
    left = f", survivors {_describe_survivors(kept)}" if kept.kind != "none" else ""
    return f"{fault.call}{where} fails with {fault.errno}{lasts}{after}{part}{left}"


def _describe_damage(file: str, kind: DamageKind, at: int, size: int) -> str:
    match kind:
        case "delete":
            return f"delete {file}"
        case "reword":
            return f"reword member {at} of {file}, change {size}"
        case "touch":
            return f"let {file} look {at} ms old"
        case "truncate":
            return f"cut {file} to {at} B"
        case "zero":
            return f"zero {size or 'all'} B of {file} from byte {at}"
        case "restore":
            return "put back what was damaged"
        case "unreadable":
            return f"{size} B of {file} from byte {at} cannot be read"
        case "repeat":
            return f"repeat in {size} B of {file} from byte {at} what follows"
        case "flip":
            return f"flip {size} B of {file} from byte {at}"
        case _:
            assert_never(kind)


def _describe_crash(kind: CrashKind, survivors: Survivors, cut: int) -> str:
    after = f" after {cut} B of the page" if cut else ""
    if kind == "process_kill":
        return f"PROCESS KILL{after}"
    return f"POWER LOSS{after}, survivors {_describe_survivors(survivors)}"


def _describe_survivors(survivors: Survivors) -> str:
    number = f"({survivors.number})" if survivors.kind in ("prefix", "hashed") else ""
    units = "; ".join(describe_unit(unit) for unit in survivors.units)
    listed = f" [{units}]" if survivors.kind == "units" else ""
    return f"{survivors.kind.upper()}{number}{listed}"


def describe_unit(unit: KeptUnit) -> str:
    """A kept unit in words."""
    match unit.place:
        case -1:  # UNIT_ENTRY
            return f"entry {unit.path} after change {unit.version}"
        case -2:  # UNIT_END
            return f"size of {unit.path} after change {unit.version}"
        case -3:  # UNIT_ORDER
            return f"the first {unit.version} directory changes"
        case -4:  # UNIT_TAIL
            what = "garbage" if unit.version == 1 else "another file's bytes"
            return f"{what} in new room of {unit.path}"
        case sector:
            return f"{unit.path} sector {sector} after change {unit.version}"
