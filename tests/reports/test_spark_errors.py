from __future__ import annotations

import pytest

from crashmq.reports.errors import (
    BadRequest,
    CannotWrite,
    EnvironmentMissing,
    NotARun,
    ReportError,
    ShardLost,
)
from crashmq.reports.spark_errors import in_sentences

# Py4J's classes are named alike; what counts is how they are named.
Py4JError = type("Py4JError", (Exception,), {})
Py4JNetworkError = type("Py4JNetworkError", (Py4JError,), {})
JAVA = "\n\n\tat org.apache.spark.x"


def told(error: Exception) -> ReportError:
    with pytest.raises(ReportError) as refusal, in_sentences():
        raise error
    assert "org.apache" not in str(refusal.value)
    return refusal.value


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Job 3 cancelled because SparkContext was shut down\n\tat x"),
        ConnectionRefusedError(111, "Connection refused"),
        ConnectionResetError(104, "Connection reset by peer"),
        BrokenPipeError(32, "Broken pipe"),
        Py4JNetworkError("Error while sending or receiving"),
        Py4JError("An error occurred while calling o58.save"),
    ],
)
def test_spark_that_is_gone_is_one_sentence(error: Exception) -> None:
    said = told(error)

    assert isinstance(said, EnvironmentMissing)
    assert "the same command continues" in str(said)


def test_a_store_that_executors_cannot_make_is_one_sentence() -> None:
    raised = RuntimeError(
        "  File x\ncrashmq.harness.subjects.named.BadSubject: notes:Notes: there is no "
        f"module 'notes'.{JAVA}"
    )

    said = told(raised)

    assert isinstance(said, EnvironmentMissing)
    assert "cannot make the store. notes:Notes: there is no module 'notes'." in str(
        said
    )


@pytest.mark.parametrize(
    "kind", [CannotWrite, EnvironmentMissing, NotARun, ShardLost, BadRequest]
)
def test_what_an_executor_raised_is_raised_here(kind: type[ReportError]) -> None:
    raised = f"Traceback\ncrashmq.reports.errors.{kind.__name__}: It is so.{JAVA}"

    said = told(RuntimeError(raised))

    assert (type(said), str(said)) == (kind, "It is so.")


def test_a_disk_that_is_full_for_spark_is_no_defect() -> None:
    raised = RuntimeError(f"java.io.IOException: No space left on device{JAVA}")

    assert "Spark cannot write its own files: No space left on device" in str(
        told(raised)
    )


def test_what_is_unknown_is_raised_as_it_is() -> None:
    error = RuntimeError("crashmq.reports.errors.Unknown: what is this?")

    with pytest.raises(RuntimeError) as raised, in_sentences():
        raise error

    assert raised.value is error
