from __future__ import annotations

import pickle
from pathlib import Path

import pytest

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
