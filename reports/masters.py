"""The address of a Spark master: whether it is valid, and whether a master answers.

Spark itself retries an address for a minute and then aborts. So a master is asked
first, in the frames of Spark's own transport, for a stream that cannot exist; every
master answers that with a refusal. A port that is closed, silent or uses another
protocol is detected within seconds.

Source: org.apache.spark.network.protocol, MessageEncoder, StreamRequest and
StreamFailure, Spark 4.3: frame length i64 | type i8 | text length i32 | text.
"""

from __future__ import annotations

import re
import socket
import struct

from crashmq.reports.errors import BadMaster, EnvironmentMissing

_MASTER = re.compile(
    r"local(\[(\*|\d+)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]"
    r"|spark://[^,/:]+:\d+(,[^,/:]+:\d+)*|yarn|k8s://.+"
)
ATTEMPTS = 4  # at a task on this machine, as elsewhere
_ANSWER_TIMEOUT_S = 5.0
_HEADER = struct.Struct(">qbi")  # frame length, type, length of the first text
_STREAM_REQUEST, _STREAM_FAILURE = 6, 8
_STREAM = b"/files/crashmq-greeting"


def is_local(master: str) -> bool:
    """Whether executors run on this machine, with its files and its Python."""
    return master.startswith("local")


def check_master(master: str, timeout_s: float = _ANSWER_TIMEOUT_S) -> None:
    """Check that ``master`` is an address, and that a standalone master answers.

    Raises:
        BadMaster: it is not an address that Spark knows.
        EnvironmentMissing: no master answers at any of its hosts within ``timeout_s``
            each.
    """
    if _MASTER.fullmatch(master) is None:
        raise BadMaster(
            f"{master!r} is no master of Spark; give local[*], local[2], "
            f"spark://HOST:PORT, yarn or k8s://URL."
        )
    if not master.startswith("spark://"):
        return
    refused = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            _greet(host, int(port), timeout_s)
        except (OSError, OverflowError) as error:
            refused.append(f"{address}: {error}")
        else:
            return
    raise EnvironmentMissing(
        f"no Spark master answers at {master} ({'; '.join(refused)}); start it, "
        f"correct the address, or leave --master out to run on this machine."
    )


def greeting() -> bytes:
    """A frame that asks for a stream that no master has, so that it refuses."""
    size = _HEADER.size + len(_STREAM)
    return _HEADER.pack(size, _STREAM_REQUEST, len(_STREAM)) + _STREAM


def is_refusal(answer: bytes) -> bool:
    """Whether ``answer`` begins with a master's refusal of ``greeting``."""
    if len(answer) < _HEADER.size + len(_STREAM):
        return False
    _, kind, length = _HEADER.unpack_from(answer)
    named = answer[_HEADER.size : _HEADER.size + length]
    return bool(kind == _STREAM_FAILURE and named == _STREAM)


def _greet(host: str, port: int, timeout_s: float) -> None:
    """Send the greeting; raises an OSError unless a master answers."""
    with socket.create_connection((host, port), timeout_s) as connection:
        connection.sendall(greeting())
        answer = b""
        while len(answer) < _HEADER.size + len(_STREAM):
            received = connection.recv(4096)
            if not received:
                break
            answer += received
    if not is_refusal(answer):
        raise ConnectionError("who answers there is no Spark master")
