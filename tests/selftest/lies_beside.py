"""Answers that are not the store's, and lie only while others act beside a read."""

from __future__ import annotations

from misreporting import INDEXED, KEYED, PLAIN, PULL, PUT, REPUT, Lie, bug, does, lie

from crashmq.models.ops import (
    Crash,
    DeleteTopic,
    During,
    LookMessage,
    Op,
    PullFiltered,
    QueryMessage,
    SearchOffset,
    Shutdown,
    Subscribe,
    Together,
)
from crashmq.models.program import Program, Setup

_BESIDE = "self._runtime.turns_taken is not None"
_NEXT = "result.next_begin_offset,"
_STATUS = "PULL_STATUSES[result.status.value],"
_MESSAGES = "result.messages,"
_FOUND = "self._store.look_message_by_offset(phy_offset)"
_RETURNED = "return Pulled("
_FILTERED = "crashmq.harness.subjects.subscribers:Subscribers.pull_filtered"
_PULLED = "FilteredPull(pulled_of(found),"
_OF = "pulled_of(found)"
_REPLACE = "__import__('dataclasses').replace"
_SUBSCRIBED = Subscribe("g", "T0", "*", "TAG")
FILTERS = Setup(keeps_progress=True, filters=True)
_LOOK, _SEARCH = LookMessage(0), SearchOffset("T0", 0, 0)
_QUERY = QueryMessage("T0", "a")


def _beside(*ops: Op) -> Program:
    return does(PLAIN, PUT, PUT, REPUT, Together((PUT, *ops)))


def _while(lied: str, honest: str) -> str:
    """The lie while others act, else the truth."""
    return f"({lied} if {_BESIDE} else {honest})"


def _lies(law: str, verb: str, said: str, lied: str, *ops: Op) -> Lie:
    """``said`` without its comma is what the lie stands for."""
    honest = said.rstrip(",")
    tail = said[len(honest) :]
    return lie(law, verb, said, _while(lied, honest) + tail, _beside(*ops))


LIES_BESIDE = (
    _lies("RD-11", "look", _FOUND, "None", _LOOK),
    _lies(
        "RD-11",
        "look",
        _FOUND,
        "self._store.look_message_by_offset(131)",
        _LOOK,
    ),
    lie(
        "RD-11",
        "look",
        _FOUND,
        _while("None", _FOUND),
        does(
            PLAIN,
            *(PUT, REPUT),
            During(Together((PUT, _LOOK, PUT)), 9, Crash("process_kill")),
        ),
    ),
    lie(
        "RD-12",
        "search",
        "Searched(found,",
        f"Searched({_while('77', 'found')},",
        _beside(_SEARCH),
    ),
    lie(
        "RD-12",
        "search",
        "stored_at, earliest)",
        f"stored_at, {_while('earliest + 1', 'earliest')})",
        _beside(_SEARCH),
    ),
    lie(
        "RD-12",
        "search",
        "stored_at, earliest)",
        f"{_while('stored_at + 1', 'stored_at')}, earliest)",
        _beside(_SEARCH, Shutdown()),
    ),
    _lies("RD-5", "pull", _NEXT, "result.next_begin_offset + 3", PULL),
    _lies("RD-5", "pull", _NEXT, "result.next_begin_offset - 1", PULL, Shutdown()),
    _lies("RD-5", "pull", _STATUS, "'NO_MATCHED_MESSAGE'", PULL),
    _lies("RD-5", "pull", _STATUS, "'OFFSET_OVERFLOW_ONE'", PULL),
    _lies("RD-5", "pull", _MESSAGES, "result.messages[:-1]", PULL),
    _lies("RD-5", "pull", _MESSAGES, "()", PULL, DeleteTopic("T0")),
    lie(
        "RD-5",
        "pull",
        _RETURNED,
        f"return Pulled('OFFSET_OVERFLOW_ONE', 0, 0, 0) if {_BESIDE} else Pulled(",
        _beside(PULL),
    ),
    lie(
        "RD-13",
        "pull",
        "result.max_offset,",
        f"{_while('result.max_offset - 1', 'result.max_offset')},",
        does(PLAIN, PUT, PUT, REPUT, PULL, Together((PUT, PULL))),
    ),
    lie(
        "RD-13",
        "pull",
        _RETURNED,
        f"return Pulled('NO_MATCHED_LOGIC_QUEUE', 0, 0, 0) if {_BESIDE} else Pulled(",
        does(PLAIN, PUT, PUT, REPUT, PULL, Together((PUT, PULL))),
    ),
    bug(
        "RD-14",
        _FILTERED,
        _PULLED,
        f"FilteredPull({_REPLACE}({_OF}, max_offset=9),",
        does(FILTERS, *(PUT, REPUT, _SUBSCRIBED, PullFiltered("g", "T0", 0, 0))),
    ),
    bug(
        "RD-14",
        _FILTERED,
        _PULLED,
        f"FilteredPull({_REPLACE}({_OF}, next_begin_offset=found.max_offset + 1),",
        does(
            FILTERS,
            *(PUT, REPUT, _SUBSCRIBED),
            Together((PullFiltered("g", "T0", 0, 0), PUT)),
        ),
    ),
    lie(
        "IX-12",
        "query",
        "Queried(result.messages)",
        f"Queried({_while('result.messages * 99', 'result.messages')})",
        does(INDEXED, KEYED, REPUT, Together((PUT, _QUERY))),
    ),
    lie(
        "IX-12",
        "query",
        "Queried(result.messages)",
        "Queried(tuple(m.replace(b'a b', b'a c') for m in result.messages))",
        does(
            INDEXED,
            *(KEYED, REPUT),
            During(Together((_QUERY, PUT, PUT)), 2, Crash("process_kill")),
        ),
    ),
    lie(
        "IX-11",
        "query",
        "Queried(result.messages)",
        f"Queried({_while('()', 'result.messages')})",
        does(INDEXED, KEYED, REPUT, Together((PUT, _QUERY))),
    ),
    lie(
        "IX-11",
        "query",
        "Queried(result.messages)",
        f"Queried({_while('result.messages[1:]', 'result.messages')})",
        does(INDEXED, KEYED, KEYED, REPUT, Together((_QUERY, REPUT))),
    ),
)
"""What shows each of them is a read that begins with others, and ends as they do."""
