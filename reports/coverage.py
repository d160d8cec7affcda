"""Coverage of a run: what it reached and what it never did, as small data frames."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the field's name for it


def scenario_totals(episodes: DataFrame) -> DataFrame:
    """Sums by scenario.

    (scenario, episodes, passed, violated, unjudged, steps, crashes, recoveries,
    elapsed_us); unjudged is neither passed nor violated: unknown, timeout, signal:N.
    """
    outcome = F.col("outcome")
    return (
        episodes.groupBy("scenario")
        .agg(
            F.count("*").alias("episodes"),
            F.count_if(outcome == "passed").alias("passed"),
            F.count_if(outcome == "violated").alias("violated"),
            F.count_if(~outcome.isin("passed", "violated")).alias("unjudged"),
            F.sum("steps").alias("steps"),
            F.sum("crashes").alias("crashes"),
            F.sum("recoveries").alias("recoveries"),
            F.sum("elapsed_us").alias("elapsed_us"),
        )
        .select(
            *("scenario", "episodes", "passed", "violated", "unjudged"),
            *("steps", "crashes", "recoveries", "elapsed_us"),
        )
    )


def op_statuses(episodes: DataFrame, declared: DataFrame) -> DataFrame:
    """(op, status, times); an op of ``declared`` (op) that never ran: status "", 0."""
    return (
        episodes.select(F.explode("op_counts").alias("count"))
        .groupBy(F.col("count.op").alias("op"), F.col("count.status").alias("status"))
        .agg(F.sum("count.times").alias("times"))
        .join(declared.select("op"), on="op", how="full")
        .na.fill({"status": "", "times": 0})
        .select("op", "status", "times")
    )


def crash_points(episodes: DataFrame) -> DataFrame:
    """Crashes by op, disk action and kind of file, and their outcomes.

    (action, file_kind, op, kind, survivors, recovery, crashes, violated); survivors
    without their number; violated counts the crashes that were the last one at or
    before the first breach of an episode.
    """
    survivors = F.lower(F.regexp_extract("point.survivors", r"^[A-Za-z_]*", 0))
    return (
        episodes.withColumn("breach", _first_breach_step())
        .withColumn("last_crash", _last_crash_before("breach"))
        .select("last_crash", F.explode("crash_points").alias("point"))
        .groupBy(
            *("point.action", "point.file_kind", "point.op", "point.kind"),
            survivors.alias("survivors"),
            "point.recovery",
        )
        .agg(
            F.count("*").alias("crashes"),
            F.count_if(F.col("point.step") == F.col("last_crash")).alias("violated"),
        )
        .select(
            *("action", "file_kind", "op", "kind"),
            *("survivors", "recovery", "crashes", "violated"),
        )
    )


def probe_hits(episodes: DataFrame, declared: DataFrame) -> DataFrame:
    """Hits of each probe by scenario.

    (probe, sentence, scenario, hits, episodes); a probe of ``declared`` (probe,
    sentence) that was never hit: scenario "", zeros.
    """
    return (
        episodes.select("scenario", F.explode("probes").alias("hit"))
        .groupBy(F.col("hit.probe").alias("probe"), "scenario")
        .agg(
            F.sum("hit.hits").alias("hits"),
            F.count_if(F.col("hit.hits") > 0).alias("episodes"),
        )
        .join(declared.select("probe", "sentence"), on="probe", how="full")
        .na.fill({"sentence": "", "scenario": "", "hits": 0, "episodes": 0})
        .select("probe", "sentence", "scenario", "hits", "episodes")
    )


def run_digest(episodes: DataFrame) -> DataFrame:
    """(digest): SHA-256 over what every episode saw, whatever the order of rows.

    Episodes are sorted and hashed in blocks of a thousand, then the blocks, so that no
    row grows with the run. Equal for two runs of one definition; timings are left out.
    """
    seen = F.concat_ws(" ", "episode_id", "scenario", "outcome", "signature", "digest")
    block = F.floor(F.col("episode_id") / 1000)
    return (
        episodes.groupBy(block.alias("block"))
        .agg(_sorted_hash(F.struct("episode_id", seen.alias("text"))).alias("text"))
        .agg(_sorted_hash(F.struct("block", "text")).alias("digest"))
        .select("digest")
    )


def _sorted_hash(row: Column) -> Column:
    rows = F.sort_array(F.collect_list(row))
    return F.sha2(F.array_join(rows["text"], "\n"), 256)


def _first_breach_step() -> Column:
    broken = F.filter("verdicts", lambda verdict: verdict["violations"] > 0)
    return F.array_min(F.transform(broken, lambda verdict: verdict["step"]))


def _last_crash_before(breach: str) -> Column:
    """Its step; null where nothing was broken, and so equal to no crash's step."""
    before = F.filter("crash_points", lambda point: point["step"] <= F.col(breach))
    return F.array_max(F.transform(before, lambda point: point["step"]))
