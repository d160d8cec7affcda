"""An object store that speaks S3, on this machine: Moto's server, in a process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

_BEGINS_WITHIN_S = 120.0
BUCKET = "nights"
# Anyone is let in; who asks needs to have a name all the same.
SIGNED = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


@contextmanager
def object_store() -> Iterator[str]:
    """The host and port of an object store that has one empty bucket."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{taken.getsockname()[1]}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1"]
    command += ["-p", at.rpartition(":")[2]]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet, env=os.environ) as moto:
        try:
            _make_bucket(f"http://{at}/{BUCKET}")
            yield at
        finally:
            moto.terminate()


def address_of(at: str, name: str) -> str:
    """What is typed for a place in the bucket."""
    options = f"scheme=http&region=us-east-1&endpoint_override={at}"
    return f"s3a://{BUCKET}/{name}?{options}"


def _make_bucket(url: str) -> None:
    until = time.monotonic() + _BEGINS_WITHIN_S
    while True:
        try:
            urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=9)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return
