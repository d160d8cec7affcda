"""Programs as JSON.

The JSON of an op has its fields, and its class's name under ``"op"``. Reading it checks
names, types and nesting, and runs nothing.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

from crashmq.models.ops import (
    EVENT_CLASSES,
    OP_CLASSES,
    Crash,
    DiskFault,
    During,
    Event,
    Op,
    Schedule,
    Session,
    Survivors,
    Together,
)
from crashmq.models.printable import shown
from crashmq.models.program import BadProgram, Program, Setup
from crashmq.models.short_ops import op_of_source

_EVENTS: dict[str, type[Event]] = {cls.__name__: cls for cls in EVENT_CLASSES}
_OPS = frozenset(cls.__name__ for cls in OP_CLASSES)
_PARTS: dict[str, type] = {"survivors": Survivors, "schedule": Schedule}
_DEPTH_MAX = 16
_FOUND_MAX = 300


def op_to_dict(op: Event) -> dict[str, Any]:
    """An op or event as a JSON object."""
    out: dict[str, Any] = {"op": type(op).__name__}
    for field in fields(op):
        value = getattr(op, field.name)
        if isinstance(op, During) and field.name in ("op", "event"):
            value = op_to_dict(value)
            out["during" if field.name == "op" else "event"] = value
        elif isinstance(op, Together) and field.name == "ops":
            out["together"] = [op_to_dict(part) for part in op.ops]
        elif isinstance(op, Session):
            out["session"] = [op_to_dict(part) for part in op.ops]
        elif isinstance(op, Together):
            out["schedule"] = _schedule_to_dict(op.schedule)
        elif isinstance(op, Crash) and field.name == "survivors":
            out["survivors"] = _survivors_to_dict(value)
        elif isinstance(op, DiskFault) and field.name == "survivors":
            if value != Survivors():  # so programs of before are written as before
                out["survivors"] = _survivors_to_dict(value)
        else:
            out[field.name] = value
    return out


def _schedule_to_dict(schedule: Schedule) -> dict[str, Any]:
    out = {f.name: getattr(schedule, f.name) for f in fields(schedule)}
    out["preemptions"] = [list(one) for one in schedule.preemptions]
    return out


def _survivors_to_dict(survivors: Survivors) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": survivors.kind, "number": survivors.number}
    if survivors.units:
        out["units"] = [list(unit) for unit in survivors.units]
    return out


def op_from_dict(value: object, where: str, *, depth: int = 0) -> Op:
    """The op in a JSON object.

    Raises:
        BadProgram: it is no op; the message names ``where`` and what is wrong.
    """
    event = _event_from_dict(value, where, depth)
    if type(event).__name__ not in _OPS:
        raise BadProgram(
            f"{where}: {type(event).__name__} is an event, not an op; "
            f"put it under `event` of a During."
        )
    return event  # type: ignore[return-value]  # the name was just looked up


def _event_from_dict(value: object, where: str, depth: int) -> Event:
    if isinstance(value, str):  # its short form, which a file may hold
        value = op_to_dict(op_of_source(value, where))
    if not isinstance(value, dict):
        raise BadProgram(f"{where}: expected an object, got {type(value).__name__}.")
    if depth > _DEPTH_MAX:
        raise BadProgram(f"{where}: nested deeper than {_DEPTH_MAX}.")
    given = dict(value)
    name = given.pop("op", None)
    cls = _EVENTS.get(name) if isinstance(name, str) else None
    if cls is None:
        known = ", ".join(sorted(_EVENTS))
        raise BadProgram(f"{where}: unknown op {shown(name)}; known are {known}.")
    if cls is During:
        return _during_from_dict(given, where, depth)
    if cls is Together:
        return _together_from_dict(given, where, depth)
    if cls is Session:
        unknown = sorted(set(given) - {"session"})
        if unknown:
            raise BadProgram(f"{where}: Session has no field {shown(unknown[0])}.")
        return Session(_ops_from(given.get("session"), f"{where}.session", depth))
    event: Event = _convert(given, cls, where)
    return event


def _during_from_dict(given: dict[str, Any], where: str, depth: int) -> During:
    unknown = sorted(set(given) - {"during", "at_action", "event"})
    if unknown:
        raise BadProgram(f"{where}: During has no field {shown(unknown[0])}.")
    at_action = _convert(given.get("at_action"), int, f"{where}.at_action")
    inner = op_from_dict(given.get("during"), f"{where}.during", depth=depth + 1)
    event = _event_from_dict(given.get("event"), f"{where}.event", depth + 1)
    return During(inner, at_action, event)


def _together_from_dict(given: dict[str, Any], where: str, depth: int) -> Together:
    unknown = sorted(set(given) - {"together", "schedule"})
    if unknown:
        raise BadProgram(f"{where}: Together has no field {shown(unknown[0])}.")
    ops = _ops_from(given.get("together"), f"{where}.together", depth)
    schedule = _convert(given.get("schedule", {}), Schedule, f"{where}.schedule")
    return Together(ops, schedule)


def _ops_from(value: object, where: str, depth: int) -> tuple[Op, ...]:
    """The ops of a list inside an op."""
    if not isinstance(value, list):
        raise BadProgram(f"{where}: expected a list of ops.")
    return tuple(
        [
            op_from_dict(op, f"{where}[{n}]", depth=depth + 1)
            for n, op in enumerate(value)
        ]
    )


def _convert(value: Any, cls: Any, where: str) -> Any:
    if isinstance(value, dict) and is_dataclass(cls) and isinstance(cls, type):
        unknown = sorted(set(value) - {field.name for field in fields(cls)})
        if unknown:
            name = shown(unknown[0])
            raise BadProgram(f"{where}: {cls.__name__} has no field {name}.")
    try:
        return msgspec.convert(value, cls)
    except msgspec.ValidationError as error:
        found = str(error)
        if len(found) > _FOUND_MAX:  # it quotes what it cannot use
            found = f"{found[: _FOUND_MAX // 2]}…{found[-_FOUND_MAX // 2 :]}"
        raise BadProgram(f"{where}: {found}.") from None


def to_json(program: Program) -> dict[str, Any]:
    """A program as a JSON object: ``setup`` and ``ops``."""
    setup = {f.name: getattr(program.setup, f.name) for f in fields(program.setup)}
    return {"setup": setup, "ops": [op_to_dict(op) for op in program.ops]}


def to_short_json(program: Program) -> dict[str, Any]:
    """As ``to_json``, without fields at their defaults."""
    said = to_json(program)
    setup = _without(said["setup"], _defaults(Setup))
    return {"setup": setup, "ops": [_short(op) for op in said["ops"]]}


def _short(value: Any, cls: type | None = None) -> Any:
    """An op, or anything in one, without fields at their defaults."""
    if not isinstance(value, dict):
        return [_short(one) for one in value] if isinstance(value, list) else value
    cls = cls or _EVENTS.get(value.get("op", ""))
    kept = _without(value, _defaults(cls) if cls else {})
    short = {name: _short(one, _PARTS.get(name)) for name, one in kept.items()}
    return {name: one for name, one in short.items() if one or name not in _PARTS}


def _defaults(cls: type) -> dict[str, Any]:
    return {one.name: one.default for one in fields(cls)}


def _without(value: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    return {
        name: one
        for name, one in value.items()
        if name not in defaults or (one != defaults[name] and one != [])
    }


def from_json(value: object) -> Program:
    """The program in a JSON object.

    Raises:
        BadProgram: it is no program.
    """
    if not isinstance(value, dict):
        raise BadProgram(f"$: expected an object, got {type(value).__name__}.")
    ops = value.get("ops")
    if not isinstance(ops, list):
        raise BadProgram("$.ops: expected a list of ops.")
    setup = _convert(value.get("setup", {}), Setup, "$.setup")
    read = tuple(op_from_dict(op, f"$.ops[{n}]") for n, op in enumerate(ops))
    return Program(setup, read)
