"""A report from the rows of a million episodes, beside DuckDB on the same files.

Run by hand: ``python benchmarks/raw_rows.py RUN [--episodes N]``. RUN is a soak of any
length. Its files of rows get other names until there are N episodes, and no manifests,
as a run of format 1 has none: so all sums come from the rows. Then DuckDB is asked for
the same sums. Each runs in a process of its own. It prints what both took, and
complains (exit code 1) if a figure differs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / ".ci" / "checkout"))

import duckdb

from crashmq.reports.aggregates import LocalAggregates, row_files
from crashmq.reports.files import RUN_FILE, write_json
from crashmq.reports.run_dir import EPISODES_DIR, committed
from crashmq.reports.sums import SUMS, keys_of

SCENARIOS = """
select scenario, count(*) as episodes,
  count(*) filter (outcome = 'passed') as passed,
  count(*) filter (outcome = 'violated') as violated,
  count(*) filter (outcome not in ('passed', 'violated')) as unjudged,
  sum(steps) as steps, sum(crashes) as crashes, sum(recoveries) as recoveries,
  sum(elapsed_us) as elapsed_us
from episodes group by scenario
"""
OPS = """
select op, status, sum(times) as times
from (select unnest(op_counts, recursive := true) from episodes) group by all
"""
CRASH_POINTS = """
with breaches as (
  select crash_points, case when outcome = 'passed' then null else list_min(
    [v.step for v in verdicts if v.violations > 0]) end as breach
  from episodes
), blamed as (
  select crash_points,
    list_max([c.step for c in crash_points if c.step <= breach]) as blamed
  from breaches
)
select p.action, p.file_kind, p.op, p.kind,
  lower(regexp_extract(p.survivors, '^[A-Za-z_]*')) as survivors, p.recovery,
  count(*) as crashes, count(*) filter (p.step = blamed) as violated
from (select unnest(crash_points) as p, blamed from blamed) group by all
"""
PROBES = """
select h.probe, scenario, sum(h.hits) as hits, count(*) filter (h.hits > 0) as episodes
from (select scenario, unnest(probes) as h from episodes) group by all
"""
LAWS = """
select v.law, scenario, sum(v.checks) as checks,
  count(*) filter (v.violations > 0) as violations,
  count(*) filter (v.outcome = 'unknown') as unknown
from (select scenario, unnest(verdicts) as v from episodes) group by all
"""
EXCUSES = """
select e.law, e.fact, sum(e.times) as times
from (select unnest(excuses) as e from episodes) group by all
"""
QUESTIONS = {
    "scenarios": SCENARIOS,
    "ops": OPS,
    "crash_points": CRASH_POINTS,
    "probes": PROBES,
    "laws": LAWS,
    "excuses": EXCUSES,
}


def multiplied(run: Path, out: Path, episodes: int) -> int:
    """A run of format 1 in ``out``, of the files of another; how many episodes."""
    (out / EPISODES_DIR).mkdir(parents=True)
    there = [
        (shard.episodes, file)
        for shard, file in zip(committed(run), row_files(run), strict=True)
    ]
    number = made = 0
    while made < episodes:
        of_it, file = there[number % len(there)]
        os.link(str(file), out / EPISODES_DIR / f"part-{number:08d}.parquet")
        made, number = made + of_it, number + 1
    told = json.loads((run / RUN_FILE).read_text())
    write_json(out / RUN_FILE, told | {"format": 1, "episodes": made})
    (out / "declared.json").write_bytes((run / "declared.json").read_bytes())
    return made


def ours(out: Path) -> dict[str, Any]:
    return {
        name: [astuple(row) for row in rows]
        for name, rows in LocalAggregates(out).sums().items()
    }


def of_duckdb(out: Path) -> dict[str, Any]:
    found = {}
    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        files = str(out / EPISODES_DIR / "*.parquet")
        connection.read_parquet(files).create_view("episodes")
        for name, question in QUESTIONS.items():
            record = SUMS[name]
            names = ", ".join(each.name for each in fields(record))
            by = ", ".join(keys_of(record))
            asked = f"select {names} from ({question}) order by {by}"
            found[name] = connection.execute(asked).fetchall()
    return found


HOW: dict[str, Callable[[Path], dict[str, Any]]] = {
    "ours": ours,
    "duckdb": of_duckdb,
}


def measured(how: str, out: Path) -> dict[str, Any]:
    """In a process of its own: the sums, and what they took."""
    script = [sys.executable, __file__, str(out), "--how", how]
    done = subprocess.run(script, stdout=subprocess.PIPE, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def measure(how: str, out: Path) -> None:
    began, worked = time.monotonic(), time.process_time()
    sums = HOW[how](out)
    took = {
        "s": round(time.monotonic() - began, 1),
        "cpu_s": round(time.process_time() - worked, 1),
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps({"took": took, "sums": sums}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--episodes", type=int, default=1_000_000)
    parser.add_argument("--how", choices=HOW)
    typed = parser.parse_args()
    if typed.how:
        measure(typed.how, typed.run)
        return 0
    with tempfile.TemporaryDirectory(dir=typed.run.absolute().parent) as directory:
        out = Path(directory) / "run"
        episodes = multiplied(typed.run, out, typed.episodes)
        files = list((out / EPISODES_DIR).iterdir())
        size = sum(file.stat().st_size for file in files)
        print(f"{episodes:,} episodes in {len(files)} files, {size >> 20} MiB")
        found = {}
        for how in HOW:
            told = measured(how, out)
            found[how] = told["sums"]
            print(f"  {how:7} {told['took']}", flush=True)
    differing = [name for name in SUMS if found["ours"][name] != found["duckdb"][name]]
    print(f"  {'they differ in ' + str(differing) if differing else 'equal'}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
