"""Files that are not those on the disk, one change for each law that reads them."""

from __future__ import annotations

from misreporting import (
    AGAIN,
    CRASHED,
    EMPTIED,
    FLUSH,
    INDEX_AND_FAULT,
    INDEX_FILES,
    KILL,
    KILLED_WITH_A_LOST_PAGE,
    LATE,
    LISTED,
    LOG,
    MARKED,
    OLDQUEUES,
    ONE,
    PLAIN,
    PLANTED,
    PUT,
    QUEUE,
    REPUT,
    TAGGED,
    TOLD_AND_KILLED,
    TWICE,
    dead,
    does,
    down,
    files,
    patched,
)

from crashmq.models.ops import PutMessage, Restart, RunService
from crashmq.models.program import Setup

_DELAYS = "config/delayOffset.json"
_DELAYS_KEPT = does(
    Setup(delivers_delayed=True), RunService("persist_delay_offset"), KILL, Restart()
)

_TIMES = does(
    Setup(index_slots=4, index_entries=3),
    PutMessage("T0", 0, 16, keys="a b c"),
    *(PutMessage("T0", 0, 16, keys="a b c"), REPUT, FLUSH),
    *(RunService("flush_consume_queue"), RunService("flush_index")),
    RunService("checkpoint"),
)

LIES_OF_FILES = (
    files("CP-13", patched("checkpoint", 0, bytes(8), 520), _TIMES),
    files("CP-13", patched("checkpoint", 8, bytes(8), 520), _TIMES),
    files("CP-13", patched("checkpoint", 16, bytes(8), 520), _TIMES),
    down("CP-7", f"files.pop({QUEUE!r}, None)", TOLD_AND_KILLED),
    down("CP-4", patched("checkpoint", 0, bytes(8)), TOLD_AND_KILLED),
    down("DLY-9", f"files.pop({_DELAYS!r}, None)", _DELAYS_KEPT),
    down(
        "DLY-9",
        f"files.update({{path: b'{{' for path in files if path == {_DELAYS!r}}})",
        _DELAYS_KEPT,
    ),
    files("CL-2", 'files["commitlog/odd"] = b""', ONE),
    files("CL-2", 'files["commitlog/0000000000000000409x"] = b""', ONE),
    files(
        "CL-4",
        patched(LOG, 131 + 56, bytes(7) + b"1", 139),
        does(PLAIN, PUT, PUT, REPUT),
    ),
    files("CL-5", patched(LOG, 76, b"?"), ONE),
    files("CL-5", patched(LOG, 72, b"\xff"), ONE),
    files("CP-5", patched("checkpoint", 24, b"?", 520), MARKED),
    files("CP-5", patched("checkpoint", 32, b"?", 520), MARKED),
    down("CP-2", patched("checkpoint", 0, b"?", 520), CRASHED),
    down("CP-2", patched("checkpoint", 1, b"?", 520), CRASHED),
    down("CP-2", patched("checkpoint", 0, b"?", 520), KILLED_WITH_A_LOST_PAGE),
    down("CP-3", patched("checkpoint", 8, b"?", 520), LATE),
    down("CP-3", patched("checkpoint", 9, b"?", 520), LATE),
    down("CP-8", patched(LOG, 19, b"?"), MARKED),
    down("CP-8", patched(LOG, 41, b"?"), MARKED),
    files("CQ-1", patched(QUEUE, 12, b"?", 16), ONE),
    files("CQ-2", patched(QUEUE, 20, bytes(20), 28), does(PLAIN, PUT, PUT, PUT, REPUT)),
    files("CQ-3", patched(QUEUE, 20, b"?" * 12, 16), ONE),
    files("CQ-5", f"files['{QUEUE}'[:-2] + 'odd'] = b''", ONE),
    files("CQ-5", f"files['{QUEUE}'[:-1] + '1'] = bytes(20)", ONE),
    files("CQ-6", patched("consumequeue_ext/", 5, b"?"), TAGGED),
    files("CQ-6", patched("consumequeue_ext/", 12, b"?"), TAGGED),
    files("CQ-7", "files['consumequeue_ext/T0/0/odd'] = b''", ONE),
    files("CQ-7", "files['consumequeue_ext/T0/0/%020d' % 7] = b'?' * 20", ONE),
    files("DEL-1", "files['commitlog/%020d' % 1] = bytes(4096)", ONE),
    files(
        "DEL-2",
        f"if '{LOG}' not in files: files.pop('{QUEUE.replace('T0', 'T1')}', None)",
        EMPTIED,
    ),
    files(
        "DEL-2",
        f"if '{LOG}' not in files: files.update({{p: bytes(len(d)) for p, d in "
        "files.items() if 'T1' in p})",
        EMPTIED,
    ),
    files("DEL-7", "files['deletedTopics'] = b'?'", ONE),
    files("DEL-7", "files['deletedTopics'] = b''", AGAIN),
    files("DEL-8", dead("1 -1 T0"), ONE),
    files("DEL-8", dead("1 0 T0"), ONE),
    files("DEL-9", dead("1 -1 T1"), AGAIN),
    files("DEL-17", dead("0 -1 T1"), AGAIN),
    files("IX-5", patched("index/", 40, bytes(16)), LISTED),
    files("IX-7", 'files["index/odd"] = b""', LISTED),
    files(
        "IX-7",
        "files.update({p: d + b'?' for p, d in files.items() if p[:6] == 'index/'})",
        LISTED,
    ),
    down("IX-8", patched("index/", 39, b"\1"), INDEX_FILES),
    down("IX-8", patched("index/", 32, b"?"), INDEX_FILES),
    files("IX-9", patched("index/", 39, b"\1"), INDEX_AND_FAULT),
    down("REC-6", "files.pop('abort', None)", CRASHED),
    down("REC-6", "files['abort'] = b''", AGAIN),
    files("REC-9", "files['config'] = b'%d' % self.disk.actions", TWICE),
    files("REC-9", "files['timerwheel'] = b'%d' % (self.disk.actions // 2)", TWICE),
    files("IX-3", patched("index/", 32, b"?"), LISTED),
    files("DEL-1", "files['commitlog/%020d' % 9] = bytes(4096)", ONE),
    files(
        "DEL-5",
        f"if '{LOG}' not in files and 'commitlog/%020d' % 4096 in files: "
        f"files.setdefault('{QUEUE}', bytes(11) + b'd' + bytes(8))",
        OLDQUEUES,
    ),
    files(
        "REC-1",
        f"if self._store is not None: {patched(LOG, 19, b'?')}",
        does(PLAIN, PUT, KILL, Restart()),
    ),
    down("REC-14", patched("commitlog/notes", 0, b"?"), PLANTED),
    down("REC-14", patched("commitlog/notes", 7, b"?"), PLANTED),
)
