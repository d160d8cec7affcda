"""Mutants of the real host, which no simulated history runs."""

from __future__ import annotations

from harness_mutant import Row, mutants_of

_HOST: tuple[Row, ...] = (
    (
        "H01",
        *("service_threads", "_ServiceThread._do"),
        *("except Exception as error:", "except OSError as error:"),
    ),
    (
        "H02",
        *("service_threads", "_ServiceThread._turn"),
        *("self._do(service.run_last)", "pass"),
    ),
    (
        "H03",
        *("service_threads", "ServiceThreads._in_order_of_end"),
        *("service.name not in first", "service.name in first"),
    ),
    (
        "H04",
        *("service_threads", "_ServiceThread.tell_to_stop"),
        *("self._wake.set()", "pass"),
    ),
    (
        "H05",
        *("service_threads", "_ServiceThread._do"),
        *("if self._failed_rounds == 1:", "if self._failed_rounds:"),
    ),
    (
        "H06",
        *("thread_runtime", "ThreadEvent.wait"),
        *("timeout_ms / 1000", "timeout_ms / 1_000_000"),
    ),
    (
        "H07",
        *("real_disk", "RealLock.__init__"),
        "fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.flock(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)",
    ),
)

HOST = mutants_of("host", "crashmq.engine.host", _HOST)
