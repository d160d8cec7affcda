"""How long a report of a big run takes, and how much memory.

Run by hand: ``python benchmarks/big_reports.py RUN [--episodes N]``. RUN is a soak of
any length; the manifest of its first shard is given to as many others as a run of N
episodes has, each with its own bounds. The report is made of the manifests as they
are, and of manifests joined as ``crashmq compact`` joins them.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / ".ci" / "checkout"))

import pyarrow as pa
import pyarrow.parquet as pq

from crashmq.reports.aggregates import LocalAggregates, manifest_at
from crashmq.reports.files import write_json
from crashmq.reports.records import Shard, shards_of
from crashmq.reports.render import collect_figures, render
from crashmq.reports.run_dir import MANIFESTS_DIR, committed, name_of
from crashmq.reports.shards import write_groups
from crashmq.reports.sums import manifest_of_sums

JOINED = 100  # shards of a thousand episodes: rows of about 128 MiB


def multiplied(run: Path, out: Path, episodes: int) -> list[pa.Table]:
    """A run of so many episodes in ``out``, none of which failed."""
    manifest = manifest_at(run, committed(run)[0])
    shutil.copytree(run, out, ignore=shutil.ignore_patterns("*.parquet", "spark"))
    told = json.loads((out / "run.json").read_text())
    write_json(out / "run.json", told | {"episodes": episodes})
    tables = []
    for shard in shards_of(episodes):
        table = manifest
        for name, value in (
            ("failed", 0),
            ("first_episode", shard.first_episode),
            ("episodes", shard.episodes),
        ):
            at = table.schema.get_field_index(name)
            column = pa.array([value], pa.int64())
            table = table.set_column(at, table.schema.field(name), column)
        pq.write_table(table, out / MANIFESTS_DIR / name_of(shard), compression="zstd")
        tables.append(table)
    return tables


def reported(out: Path) -> str:
    """In a process of its own: what the report took."""
    script = [sys.executable, __file__, str(out), "--report"]
    return subprocess.run(script, stdout=subprocess.PIPE, text=True, check=True).stdout


def report(out: Path) -> None:
    began, worked = time.monotonic(), time.process_time()
    figures = collect_figures(LocalAggregates(out), out)
    summed, worked_on = time.monotonic() - began, time.process_time() - worked
    render(figures, out)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{summed:.1f} s to sum up ({worked_on:.1f} s of work), then "
        f"{time.monotonic() - began - summed:.1f} s to write; {most} MiB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--episodes", type=int, default=1_000_000)
    parser.add_argument("--report", action="store_true")
    typed = parser.parse_args()
    if typed.report:
        report(typed.run)
        return
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "run"
        tables = multiplied(typed.run, out, typed.episodes)
        size = sum(path.stat().st_size for path in (out / MANIFESTS_DIR).iterdir())
        print(f"{len(tables)} manifests of {typed.episodes:,} episodes, {size} bytes")
        print(f"  as they are: {reported(out)}", end="", flush=True)
        shards = list(shards_of(typed.episodes))
        for first in range(0, len(shards), JOINED):
            some = shards[first : first + JOINED]
            whole = Shard(some[0].first_episode, some[-1].end - some[0].first_episode)
            table = manifest_of_sums(whole, tables[first : first + JOINED])
            write_groups(out / MANIFESTS_DIR / name_of(whole), [table])
        print(f"  joined, {len(committed(out))} of them: {reported(out)}", end="")


if __name__ == "__main__":
    main()
