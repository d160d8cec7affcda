"""The distinct failures of a run, computed by Spark.

``episodes`` has the columns of ``EpisodeRecord``. Failures are distinguished as by
``records.signature_of``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # the field's name for it


def findings(episodes: DataFrame) -> DataFrame:
    """One row for each distinct failure: its smallest episode, and their numbers.

    (signature, outcome, law, scenario, subject, mutant, seed, setup, program, digest,
    episode_id, steps, step, op, message, events, scenarios); step, op and message are
    those of the first violation, -1 and "" without one.
    """
    return (
        episodes.transform(only_not_passed)
        .transform(with_signature)
        .transform(with_breach)
        .transform(smallest_per_signature)
        .select(
            *("signature", "outcome", "law", "scenario", "subject", "mutant"),
            *("seed", "setup", "program", "digest", "episode_id", "steps", "step"),
            *("op", "message", "events", "scenarios"),
        )
    )


def only_not_passed(episodes: DataFrame) -> DataFrame:
    """Episodes in which a law was violated or unknown, or that were not judged."""
    return episodes.where(F.col("outcome") != "passed")


def with_signature(failures: DataFrame) -> DataFrame:
    """Make ``signature`` what ``records.signature_of`` makes of it."""
    signed = F.col("signature") != ""
    named = F.when(signed, F.col("signature")).otherwise(F.col("scenario"))
    unjudged = F.concat_ws("-", F.translate("outcome", ":", "-"), named)
    is_plain = (F.col("outcome") == "violated") & signed
    signature = F.when(is_plain, F.col("signature")).otherwise(unjudged)
    return failures.withColumn("signature", signature)


def with_breach(failures: DataFrame) -> DataFrame:
    """Add ``law``, ``step``, ``op``, ``message`` of the first violated law."""
    breach = F.array_min(F.transform(_not_kept(), _by_step))
    return (
        failures.withColumn("breach", breach)
        .withColumn("law", F.coalesce("breach.law", F.lit("")))
        .withColumn("step", F.coalesce("breach.step", F.lit(-1)))
        .withColumn("op", F.coalesce("breach.op", F.lit("")))
        .withColumn("message", F.coalesce("breach.message", F.lit("")))
        .drop("breach")
    )


def smallest_per_signature(failures: DataFrame) -> DataFrame:
    """For each signature the failure with the fewest steps; ties: lower id.

    Adds ``scenarios``, the number that share the signature, by scenario.
    """
    alike = Window.partitionBy("signature")
    smallest_first = alike.orderBy("steps", "episode_id")
    there = F.count("*").over(Window.partitionBy("signature", "scenario"))
    numbers = F.collect_set(F.struct("scenario", "times")).over(alike)
    return (
        failures.withColumn("times", there)
        .withColumn("scenarios", F.map_from_entries(F.array_sort(numbers)))
        .withColumn("rank", F.row_number().over(smallest_first))
        .where(F.col("rank") == 1)
        .drop("rank")
    )


def _not_kept() -> Column:
    return F.filter("verdicts", lambda verdict: verdict["outcome"] != "passed")


def _by_step(verdict: Column) -> Column:
    names = ("step", "law", "op", "message")
    return F.struct(*(verdict[name].alias(name) for name in names))
