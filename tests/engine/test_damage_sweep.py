"""Any one damage to a store at rest: it is refused, or what is served is right."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_kinds import all_served, config_for, settings_of, started

from crashmq.engine.store.errors import StoreError
from crashmq.harness.fsck.fsck import fsck

GoldenStore = Callable[[str], tuple[Path, list[dict[str, Any]]]]
SECTOR = 512
FAST, ALL = 12, 120
SEEDS = (
    *range(FAST),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(FAST, ALL)),
)


def files_below(root: Path) -> dict[str, bytes]:
    """All but the lock, which every start takes."""
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(p.relative_to(root)): p.read_bytes() for p in paths if p.name != "lock"}


def damage(root: Path, rng: random.Random) -> str:
    """One thing done to one file that a store reads; says what."""
    names = ("commitlog", "consumequeue", "index", "checkpoint")
    path = rng.choice([p for p in files_below(root) if p.startswith(names)])
    file = root / path
    data = bytearray(file.read_bytes())
    at = rng.randrange(len(data))
    what = rng.choice(("flip", "flip", "zero", "cut", "lengthen", "remove", "copy"))
    if what == "flip":
        data[at] ^= 1 << rng.randrange(8)
    elif what == "zero":
        start = at - at % SECTOR
        data[start : start + SECTOR] = bytes(len(data[start : start + SECTOR]))
    elif what == "cut":
        del data[at:]
    elif what == "lengthen":
        data += rng.randbytes(rng.choice((1, 20, 4096)))
    elif what == "copy":
        data[at : at + 100] = data[:100][: len(data) - at]
    file.unlink() if what == "remove" else file.write_bytes(data)
    return f"{what} {path} byte {at}"


@pytest.mark.slow
@pytest.mark.parametrize("is_ours", [False, True], ids=["rocketmq", "ours"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_store_is_refused_whole_or_serves_what_was_put(
    golden_store: GoldenStore, seed: int, is_ours: bool
) -> None:
    root, rows = golden_store("rolled-clean")
    config = config_for(settings_of(root))
    if is_ours:
        assert started(root, config).shutdown()
    done = damage(root, random.Random(seed))
    before = files_below(root)
    fsck(root)
    assert files_below(root) == before, done

    why, store = "", None
    try:
        store = started(root, config)
    except StoreError as refusal:
        why = str(refusal)
    if store is None:
        assert "commitlog" in why or "consumequeue" in why or "checkpoint" in why
        assert files_below(root) == before, done
        return

    # A header that no CRC covers may lie about the queue; never about place and body.
    put = {(row["phy_offset"], row["size"], row["body_sha1"]) for row in rows}
    served = all_served(store, rows)

    assert {(r["phy_offset"], r["size"], r["body_sha1"]) for r in served} <= put, done
    assert store.shutdown()
