"""Where a run is stored: a directory on this machine, or in an object store.

``Place`` is the interface that the rest of this package uses: a ``Path`` has it, and a
``Remote`` implements it with ``pyarrow.fs``. A file is written atomically, by one PUT.
A ``Remote`` is only an address until it is used, so it can be sent to executors;
processes must not fork while it is in use, which its users ensure.

A stream of ``pyarrow.fs`` commits what it was given whenever it is closed, and it is
closed when it is dropped. So an object is written by a thread of its own, which an
interrupt does not reach.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

from crashmq.reports.errors import (
    BadRequest,
    EnvironmentMissing,
    ReportError,
    cannot_write,
)

REMOTE = ("s3", "s3a", "gs")
_WHY_MAX = 300
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a file, as ``stat`` returns it."""

    st_size: int


@dataclass(frozen=True, slots=True, order=True)
class Remote:
    """A name in an object store; ``options`` follow the ``?`` of its address."""

    scheme: str
    path: str  # bucket/and/so/on
    options: str = ""

    def __str__(self) -> str:
        """The address as the user typed it."""
        options = f"?{self.options}" if self.options else ""
        return f"{self.scheme}://{self.path}{options}"

    def __truediv__(self, name: str) -> Remote:
        """The place ``name`` below it."""
        return Remote(self.scheme, f"{self.path}/{name}", self.options)

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> Remote:
        """The place that contains it."""
        return Remote(self.scheme, self.path.rpartition("/")[0], self.options)

    def absolute(self) -> Remote:
        """Itself, since there is no current directory."""
        return self

    def exists(self) -> bool:
        """Whether there is an object of this name, or objects below it."""
        import pyarrow.fs

        return bool(self._info().type != pyarrow.fs.FileType.NotFound)

    def is_file(self) -> bool:
        """Whether it is an object."""
        return bool(self._info().is_file)

    def is_dir(self) -> bool:
        """Whether there are objects below it."""
        import pyarrow.fs

        return bool(self._info().type == pyarrow.fs.FileType.Directory)

    def stat(self) -> Size:
        """The size of an object."""
        info = self._info()
        if info.size is None:
            raise FileNotFoundError(f"{self}: no such object")
        return Size(info.size)

    def iterdir(self) -> Iterator[Remote]:
        """The places directly below it."""
        import pyarrow.fs

        below = pyarrow.fs.FileSelector(self.path, allow_not_found=True)
        with _asked(self):
            found = self.filesystem.get_file_info(below)
        yield from (self / info.base_name for info in found)

    def read_bytes(self) -> bytes:
        """The whole content of an object."""
        with _asked(self), self.filesystem.open_input_file(self.path) as file:
            return bytes(file.read())

    def read_text(self, encoding: str = "utf-8") -> str:
        """The whole content of an object, as text."""
        return self.read_bytes().decode(encoding)

    def write_bytes(self, data: Any) -> None:
        """Write an object, atomically.

        An interrupt is raised once the object is written, or before it is begun.
        """
        writing = Lock()
        wanted = True

        def put() -> None:
            with writing:
                if wanted:
                    self._put(data)

        with (
            _asked(self, to_write=True),
            ThreadPoolExecutor(1, "crashmq-put") as thread,
        ):
            try:
                thread.submit(put).result()
            finally:
                # An interrupt amid submit() may leave a thread that nobody joins.
                with writing:
                    wanted = False

    def _put(self, data: Any) -> None:
        with self.filesystem.open_output_stream(self.path) as stream:
            stream.write(data)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: a directory exists if there are objects below it."""

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove an object."""
        if self.is_file() or not missing_ok:
            with _asked(self, to_write=True):
                self.filesystem.delete_file(self.path)

    @property
    def filesystem(self) -> Any:
        """The ``pyarrow.fs`` file system for it; one for each process.

        Raises:
            BadRequest: its options are none of that kind of store, say.
        """
        try:
            return _filesystem(self.scheme, self.path.partition("/")[0], self.options)
        except ValueError as error:
            raise _no_address(self, error) from None

    def _info(self) -> Any:
        with _asked(self):
            (info,) = self.filesystem.get_file_info([self.path])
        return info


Place: TypeAlias = Path | Remote


def place_of(typed: str) -> Place:
    """The place for a path or an address that the user typed.

    Raises:
        BadRequest: it is an address of an unsupported kind.
    """
    found = _URI.fullmatch(typed)
    if found is None:
        return Path(typed)
    scheme, rest = found[1].lower(), found[2]
    if scheme == "file":
        if not rest.startswith("/"):
            raise BadRequest(f"{typed!r} names a machine; write file:///a/directory.")
        return Path(rest)
    if scheme not in REMOTE:
        known = ", ".join(f"{each}://" for each in ("file", *REMOTE))
        raise BadRequest(
            f"{typed!r}: {scheme}:// is not read or written; give a directory that all "
            f"executors share, or one of {known}."
        )
    path, _, options = rest.partition("?")
    path = path.strip("/")
    if not path or "//" in path:
        raise BadRequest(f"{typed!r} names no place; write {scheme}://BUCKET/RUN.")
    return Remote(scheme, path, options)


def listed(place: Place, pattern: str = "*") -> list[Place]:
    """The places directly below one whose names match the pattern, by name.

    Raises:
        BadRequest: it cannot be looked at.
    """
    with looking_at(place):
        if isinstance(place, Path) and not place.is_dir():
            return []
        # Path.glob() takes a directory that cannot be read for an empty one.
        below = [
            one for one in place.iterdir() if fnmatch.fnmatchcase(one.name, pattern)
        ]
        return sorted(below, key=lambda one: one.name)


def is_there(place: Place) -> bool:
    """Whether a file or directory is at this place.

    Raises:
        BadRequest: it cannot be looked at.
    """
    with looking_at(place):
        return place.exists()


@contextmanager
def looking_at(place: Place) -> Iterator[None]:
    """Turn an error of the file system into a sentence, as a place is looked at.

    Raises:
        BadRequest: a name is too long, or a directory on the way is not this user's.
    """
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise BadRequest(
            f"{place} cannot be looked at: {why}; name a place that can."
        ) from None


def source_of(place: Place) -> Any:
    """The file in the form that pyarrow's Parquet reader accepts."""
    if isinstance(place, Path):
        return place
    with _asked(place):
        return place.filesystem.open_input_file(place.path)


@contextmanager
def _asked(place: Remote, *, to_write: bool = False) -> Iterator[None]:
    """Turn an error of an object store into a sentence."""
    try:
        yield
    except ReportError:
        raise
    except FileNotFoundError:
        if to_write:
            raise cannot_write(place.parent, "no bucket") from None
        raise
    except OSError as error:
        why = _why(error) or "no answer"
        if to_write:
            raise cannot_write(place.parent, why) from None
        raise EnvironmentMissing(f"{place} cannot be read: {why}") from None
    except ValueError as error:
        raise _no_address(place, error) from None


def _no_address(place: Remote, error: Exception) -> BadRequest:
    return BadRequest(f"{place} is no address of a place: {_why(error)}; correct it.")


def _why(error: Exception) -> str:
    """The first line of what pyarrow says, shortened."""
    return (str(error).splitlines() or [""])[0][:_WHY_MAX]


@cache
def _filesystem(scheme: str, bucket: str, options: str) -> Any:
    import pyarrow.fs

    scheme = "s3" if scheme == "s3a" else scheme
    address = f"{scheme}://{bucket}" + (f"?{options}" if options else "")
    return pyarrow.fs.FileSystem.from_uri(address)[0]
