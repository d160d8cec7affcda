"""Turns Spark's errors into errors of ours, each with a sentence.

Spark has many classes of errors, and one of an executor arrives as text, with the
traceback of Python in it. So it is recognised by its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from crashmq.reports import errors
from crashmq.reports.errors import (
    EnvironmentMissing,
    NotARun,
    ReportError,
    ShardLost,
)

_OURS = re.compile(r"crashmq\.reports\.errors\.(\w+): (.+)")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_BAD_SUBJECT = re.compile(r"BadSubject: (.+)")
_UNREADABLE = re.compile(
    r"(?:Encountered error while reading file|Path does not exist:) (file:.+?)\.\s"
)
_FULL = re.compile(r"java\.io\.\w+: .*(No space left on device|Disk quota exceeded)")
_DIED = re.compile(
    r"exited unexpectedly|ExecutorLostFailure|heartbeat|Slave lost|Worker lost"
)
# The JVM that died takes its end of a call along: an error of Python, or of py4j.
_GONE = re.compile(
    r"\A(Connection\w*|BrokenPipe|Py4JNetwork)Error: |"
    r"\APy4JError: An error occurred while calling [^\n]*\Z|"
    r"SparkContext (was shut down|has been stopped)|stopped SparkContext|"
    r"Connection refused|Answer from Java side is empty|"
    r"Master removed our application|All masters are unresponsive"
)


@contextmanager
def in_sentences() -> Iterator[None]:
    """Turn an error of Spark into one of ours, where it is known.

    Raises:
        ReportError: an executor raised it, or Spark said what it stands for.
    """
    try:
        yield
    except ReportError:
        raise
    except Exception as error:  # whose classes they are, see above
        told = _as_sentence(error)
        if told is None:
            raise
        raise told from None


def _as_sentence(error: Exception) -> ReportError | None:
    """What an error of Spark stands for; None if that is unknown."""
    text = f"{type(error).__name__}: {error}"
    if ours := _raised_there(text):
        return ours
    if missing := _NO_MODULE.search(text):
        return EnvironmentMissing(
            f"the Python of Spark's executors has no module {missing[1]}: install "
            f"crashmq there as it is here, or leave --master out to run here."
        )
    if refused := _BAD_SUBJECT.search(text):
        return EnvironmentMissing(
            f"Spark's executors cannot make the store. {refused[1]} They look at the "
            f"same path on their machine, and in their packed environment."
        )
    if unreadable := _UNREADABLE.search(text):
        return NotARun(
            f"Spark cannot read {unreadable[1]}; `crashmq report` without --master "
            "says why."
        )
    if full := _FULL.search(text):
        return EnvironmentMissing(
            f"Spark cannot write its own files: {full[1]}; what was done is kept, and "
            "the same command continues; spark/jvm.log says more."
        )
    if _DIED.search(text):
        return ShardLost(
            "Spark has lost the processes that ran a shard, again and again: make "
            "sure that there is memory for as many workers, and run the same command "
            "again to continue; spark/jvm.log says more."
        )
    if _GONE.search(text):
        return EnvironmentMissing(
            "Spark or its cluster is gone: what was done is kept, and the same "
            "command continues; spark/jvm.log says more."
        )
    return None


def _raised_there(text: str) -> ReportError | None:
    """The error of ours that an executor raised last; None if it raised none."""
    for name, sentence in reversed(_OURS.findall(text)):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, ReportError):
            return kind(sentence)
    return None
