"""The command line, installed as ``crashmq``; no other module imports it.

It parses, calls and prints, all of it in ``harness.commands``. This door is for an
interrupt that comes while that is being imported: it ends the process as any other.
"""

from __future__ import annotations

import sys

try:
    from crashmq.harness.commands.group import main
except KeyboardInterrupt:  # before there is anything that could be told about it
    exec("")  # one inside of another `exec` would have Python end by the signal
    sys.exit(130)

__all__ = ["main"]

if __name__ == "__main__":
    main()
