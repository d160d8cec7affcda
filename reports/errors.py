"""What can go wrong between a run and its report; each message is one sentence.

::

    ReportError
    ├── EnvironmentMissing    Java, a package or the master is not there (exit 4)
    └── BadRequest            what was asked for cannot be done (exit 2)
        ├── OutputExists      the directory to write to holds something already
        ├── NotARun           the directory to read from holds no run
        └── BadMaster         the master's address means nothing to Spark
"""

from __future__ import annotations


class ReportError(Exception):
    """A run could not be done or told, for a reason its user can mend."""


class EnvironmentMissing(ReportError, RuntimeError):
    """Something of the machine is missing; the message says how to get it."""


class BadRequest(ReportError, ValueError):
    """The request makes no sense here; nothing was written."""


class OutputExists(BadRequest):
    """The output directory is taken; nothing in it was touched."""


class NotARun(BadRequest):
    """The directory was not written by a soak, or not to its first shard."""


class BadMaster(BadRequest):
    """The master is no address that Spark knows."""
