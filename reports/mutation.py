"""The results of hunts for planted bugs: survival, kills by law, causes, policies."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # the field's name for it

from crashmq.reports.arrow import table_of
from crashmq.reports.files import changing, replacing
from crashmq.reports.mutation_records import HuntRecord, read_rows

HUNTS_DIR = "hunts"
CANARY = "CANARY"


def read_hunts(session: SparkSession, out: Path) -> DataFrame:
    """The rows of a campaign, converted to Parquet below its directory.

    Raises:
        NotARun: ``out`` has no campaign.
        CannotWrite: the disk is full, say.
    """
    rows = read_rows(out)
    directory = out.absolute() / HUNTS_DIR
    with changing(directory.parent):
        directory.mkdir(exist_ok=True)
    path = directory / "hunts-000000.parquet"
    with replacing(path) as temporary:
        pq.write_table(table_of(rows, HuntRecord), temporary, compression="zstd")
    # Spark takes a path for a pattern; a directory may be named like one.
    return session.read.parquet("file://" + re.sub(r"([][{}*?\\])", r"\\\1", str(path)))


def only_mutants(hunts: DataFrame) -> DataFrame:
    """The hunts for planted bugs that count as mutants."""
    return hunts.where(~F.col("mutant").isin("", CANARY))


def mutant_totals(hunts: DataFrame) -> DataFrame:
    """One row per mutant.

    (mutant, title, component, difficulty, hunts, kills, laws, median_us, p95_us,
    states, ops, trigger_ops); states and ops are medians, ops over kills.
    """
    kill_ops = F.when(_is_kill(), F.col("ops"))
    return (
        hunts.transform(only_mutants)
        .groupBy("mutant", "title", "component", "difficulty")
        .agg(
            F.count("*").alias("hunts"),
            F.count_if(_is_kill()).alias("kills"),
            F.array_join(
                F.array_sort(F.collect_set(F.when(_is_kill(), F.col("law")))), ", "
            ).alias("laws"),
            _share("elapsed_us", 0.5).alias("median_us"),
            _share("elapsed_us", 0.95).alias("p95_us"),
            _share("states", 0.5).alias("states"),
            F.coalesce(F.percentile_approx(kill_ops, 0.5, 1_000_000), F.lit(0)).alias(
                "ops"
            ),
            F.max("trigger_ops").alias("trigger_ops"),
        )
        .select(
            *("mutant", "title", "component", "difficulty", "hunts", "kills", "laws"),
            *("median_us", "p95_us", "states", "ops", "trigger_ops"),
        )
    )


def survival(hunts: DataFrame) -> DataFrame:
    """How many hunts were still without a kill after each kill.

    (policy, elapsed_us, alive, hunts); a row a moment at which one or more were killed.
    """
    mutants = hunts.transform(only_mutants)
    every = mutants.groupBy("policy").agg(F.count("*").alias("hunts"))
    until = Window.partitionBy("policy").orderBy("elapsed_us")
    return (
        mutants.where(_is_kill())
        .groupBy("policy", "elapsed_us")
        .agg(F.count("*").alias("kills"))
        .withColumn("dead", F.sum("kills").over(until))
        .join(every, "policy", how="inner")
        .withColumn("alive", F.col("hunts") - F.col("dead"))
        .select("policy", "elapsed_us", "alive", "hunts")
    )


def kill_matrix(hunts: DataFrame) -> DataFrame:
    """(mutant, law, kills, is_named): how often each law killed each mutant.

    ``is_named`` is 1 if the mutant's ``killed_by`` names the law, else 0.
    """
    return (
        hunts.transform(only_mutants)
        .where(_is_kill())
        .groupBy("mutant", "law")
        .agg(F.count("*").alias("kills"), F.max("is_named").alias("is_named"))
        .select("mutant", "law", "kills", "is_named")
    )


def law_kills(hunts: DataFrame, declared: DataFrame) -> DataFrame:
    """(law, sentence, kills, mutants); zeros for a law that killed none."""
    return (
        hunts.transform(kill_matrix)
        .groupBy("law")
        .agg(F.sum("kills").alias("kills"), F.count("*").alias("mutants"))
        .join(declared.select("law", "sentence"), "law", how="full")
        .na.fill({"sentence": ""})
        .na.fill({"kills": 0, "mutants": 0})
        .select("law", "sentence", "kills", "mutants")
    )


def bucket_pairs(hunts: DataFrame) -> DataFrame:
    """Counts of failures and pairs: (failures, signatures, both, alike, related).

    ``alike``: pairs with the same signature; ``related``: with the same mutant;
    ``both``: with both the same.
    """
    kills = hunts.transform(only_mutants).where(_is_kill())
    both = kills.groupBy("signature", "mutant").count()
    alike = both.groupBy("signature").agg(F.sum("count").alias("count"))
    related = both.groupBy("mutant").agg(F.sum("count").alias("count"))
    return (
        both.agg(F.coalesce(F.sum("count"), F.lit(0)).alias("failures"), _pairs("both"))
        .join(alike.agg(F.count("*").alias("signatures"), _pairs("alike")), how="cross")
        .join(related.agg(_pairs("related")), how="cross")
        .select("failures", "signatures", "both", "alike", "related")
    )


def policy_totals(hunts: DataFrame) -> DataFrame:
    """(policy, mutants, killed, hunts, kills, median_us, states).

    A mutant is killed under a policy if one of its hunts there was a kill.
    """
    by_mutant = (
        hunts.transform(only_mutants)
        .groupBy("policy", "mutant")
        .agg(F.max(_is_kill().cast("int")).alias("is_killed"))
        .groupBy("policy")
        .agg(F.count("*").alias("mutants"), F.sum("is_killed").alias("killed"))
    )
    by_hunt = (
        hunts.transform(only_mutants)
        .groupBy("policy")
        .agg(
            F.count("*").alias("hunts"),
            F.count_if(_is_kill()).alias("kills"),
            _share("elapsed_us", 0.5).alias("median_us"),
            F.sum("states").alias("states"),
        )
    )
    return by_mutant.join(by_hunt, "policy", how="inner").select(
        "policy", "mutants", "killed", "hunts", "kills", "median_us", "states"
    )


def changes(hunts: DataFrame, before: DataFrame) -> DataFrame:
    """Two campaigns compared.

    (mutant, was_kills, was_hunts, was_us, kills, hunts, median_us); a mutant that only
    one of them had has -1 for its hunts in the other.
    """
    now = hunts.transform(mutant_totals).select("mutant", "kills", "hunts", "median_us")
    was = before.transform(mutant_totals).select(
        "mutant",
        F.col("kills").alias("was_kills"),
        F.col("hunts").alias("was_hunts"),
        F.col("median_us").alias("was_us"),
    )
    counts = ("was_kills", "was_us", "kills", "median_us")
    return (
        now.join(was, "mutant", how="full")
        .na.fill(-1, ["was_hunts", "hunts"])
        .na.fill(0, list(counts))
        .select(
            *("mutant", "was_kills", "was_hunts", "was_us"),
            *("kills", "hunts", "median_us"),
        )
    )


def _is_kill() -> Column:
    return F.col("outcome") == "killed"


def _share(column: str, part: float) -> Column:
    return F.percentile_approx(column, part, 1_000_000)


def _pairs(name: str) -> Column:
    pairs = F.sum(F.col("count") * (F.col("count") - 1) / 2).cast("bigint")
    return F.coalesce(pairs, F.lit(0)).alias(name)
