"""A soak in processes of this machine that somebody is going to kill: OUT EPISODES."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from sample_run import DECLARED, SampleTask

from crashmq.harness.searches.shards_here import run_here
from crashmq.reports.records import EpisodeRecord
from crashmq.reports.run_dir import Wanted, begin_run


class SlowTask(SampleTask):
    """A millisecond an episode, so that a kill meets it."""

    def episode(self, episode_id: int) -> EpisodeRecord:
        time.sleep(0.001)
        return super().episode(episode_id)


if __name__ == "__main__":
    out, episodes = Path(sys.argv[1]), int(sys.argv[2])
    task = SlowTask(break_every=13)
    begin_run(out, task.run_id, task.definition, episodes, DECLARED)
    print("begun", flush=True)
    run_here(task, out, Wanted(episodes), lambda _: None, workers=2)
