from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner

from crashmq.harness.cli import main
from crashmq.reports.errors import BadRequest
from crashmq.reports.places import Remote, listed, place_of


def test_a_path_is_a_path_and_an_address_of_a_file_too() -> None:
    assert place_of("runs/tonight") == Path("runs/tonight")
    assert place_of("file:///srv/runs") == Path("/srv/runs")


def test_an_address_keeps_its_options_wherever_one_goes() -> None:
    run = place_of("s3a://bucket/a/run/?region=x")

    assert isinstance(run, Remote)
    assert str(run / "run.json") == "s3a://bucket/a/run/run.json?region=x"
    assert (run.name, str(run.parent)) == ("run", "s3a://bucket/a?region=x")
    assert pickle.loads(pickle.dumps(run)) == run


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("hdfs://a/b", "hdfs:// is not read or written; give a directory"),
        ("file://host/a", "names a machine; write file:///a/directory"),
        ("s3://", "names no place; write s3://BUCKET/RUN"),
    ],
)
def test_what_is_not_supported_is_refused_in_a_sentence(typed: str, says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        place_of(typed)


def test_what_lies_in_a_place_is_told_by_name(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "c.txt"):
        (tmp_path / name).touch()

    found = listed(tmp_path, "*.json")

    assert [place.name for place in found] == ["a.json", "b.json"]
    assert listed(tmp_path / "nowhere") == []


def test_a_directory_that_cannot_be_read_is_not_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: object) -> NoReturn:  # as another user is; root is let in anywhere
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    for name in ("scandir", "listdir"):
        monkeypatch.setattr(os, name, refused)

    with pytest.raises(BadRequest, match="cannot be looked at: Permission denied"):
        listed(tmp_path)


@pytest.mark.parametrize("command", ["report", "nights", "compact"])
@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("s3://bucket/run?reigon=x", "Unexpected query parameter in S3 URI: 'reigon'"),
        ("s3://bucket/run?region=x&scheme=ftp", "Invalid S3 connection scheme 'ftp'"),
        ("s3://b%zz/run?region=x", "Cannot parse URI: "),
    ],
)
def test_an_address_with_a_wrong_option_is_one_sentence(
    command: str, address: str, says: str
) -> None:
    pytest.importorskip("pyarrow.fs", reason="pyarrow is not installed")

    result = CliRunner().invoke(main, [command, address])

    assert (result.exit_code, result.stdout) == (2, "")
    (sentence,) = result.stderr.splitlines()
    assert f"is no address of a place: {says}" in sentence
