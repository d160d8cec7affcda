"""The errors of runs and reports; each message is one sentence."""

from __future__ import annotations


class ReportError(Exception):
    """A run or its report failed for a reason that the user can fix."""


class EnvironmentMissing(ReportError, RuntimeError):
    """Something is not installed on the machine; the message says how to install it."""


class NotInstalled(EnvironmentMissing):
    """A package, or a Java that Spark starts on, is not installed."""


class CannotWrite(EnvironmentMissing):
    """A file could not be written; what was written before is kept."""


class ShardLost(EnvironmentMissing):
    """A shard was run repeatedly, and its process died each time."""


class BadRequest(ReportError, ValueError):
    """The request cannot be carried out here; nothing was written."""


class OutputExists(BadRequest):
    """The output directory exists already; nothing in it was touched."""


class NotARun(BadRequest):
    """The directory was not written by a soak, or has no complete shard."""


class BadMaster(BadRequest):
    """The master is not an address in a form that Spark knows."""


def cannot_write(directory: object, why: str) -> CannotWrite:
    """The error for a directory or a place that refuses a file."""
    return CannotWrite(
        f"{directory} cannot be written: {why}; fix that and run the same command "
        "again, which continues from what is there."
    )
