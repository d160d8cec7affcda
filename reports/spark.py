"""The Spark session of a run: quiet, offline, with a chosen Java and Python.

The same builder serves ``local[*]``, a cluster and a script under ``spark-submit``,
where the JVM exists already and the user's configuration is kept. Everything that Spark
writes goes below ``spark/`` of the run's directory; ``jvm.log`` there has the output of
the JVM and the Python workers, to look at after a failure.

Environment variables are set only while the JVM starts, and restored after.
"""

from __future__ import annotations

import hashlib
import logging
import os
import site
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import crashmq
from crashmq.reports.errors import EnvironmentMissing, NotInstalled
from crashmq.reports.files import SPARK_DIR
from crashmq.reports.jvm import default_cache_dir, java_home
from crashmq.reports.masters import ATTEMPTS, check_master, is_local
from crashmq.reports.places import Place
from crashmq.reports.spark_errors import in_sentences

DEFAULT_MASTER = f"local[*,{ATTEMPTS}]"
JVM_LOG = "jvm.log"
_POLL_S = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")
_HERE = Path(__file__).resolve().parent


def open_session(
    master: str | None, run_dir: Place, extra: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark, or use the context that this process has already.

    Args:
        master: ``spark://host:port``, say; None: as configured, else ``local[*]``.
        run_dir: the run's place; Spark's own files go to ``spark/`` in it, or to a
            directory of this user if it is no directory.
        extra: configuration that overrides ours; that of ``spark-submit`` overrides
            both.

    Raises:
        BadMaster: ``master`` is not an address that Spark knows.
        NotInstalled: there is no Java, or it ended as it started.
        EnvironmentMissing: no master answers at the address.
    """
    if master is not None:
        check_master(master)
    scratch = _scratch_of(run_dir)
    # It prints kilobytes of JSON for an SQL error that is raised as well.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    # What breaks a call to the JVM is raised; an interrupt need not be told twice.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    started = {} if submitted else _environment_of_a_start()
    if not submitted:  # the driver of a cluster may have no home to write to
        scratch.mkdir(parents=True, exist_ok=True)
    with _environment(started):
        if submitted:
            # Or SparkConf would not see what spark-submit was given.
            SparkContext._ensure_initialized()
        conf = _conf(master, scratch, extra or {})
    with _environment(started | {"PYSPARK_PYTHON": _python_of(conf)}):
        if not submitted and SparkContext._active_spark_context is None:
            _start_jvm(conf, scratch / JVM_LOG)
        else:
            SparkContext.getOrCreate(conf)
    return SparkSession.builder.getOrCreate()


def mapped(
    session: SparkSession, work: Callable[[Item], Result], items: Sequence[Item]
) -> list[Result]:
    """The results of ``work`` on each item, a task each, in the order of the items.

    Raises:
        ReportError: a task raised it, or the cluster is gone, say.
    """
    context = session.sparkContext
    with in_sentences():
        return context.parallelize(items, max(1, len(items))).map(work).collect()


def mapped_as_done(
    session: SparkSession, work: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[Result]:
    """The results of ``work`` on each item, a job each, as they are done.

    As many jobs run at a time as there are cores. Who stops to listen cancels them.

    Raises:
        ReportError: a task raised it, or the cluster is gone, say.
    """
    context = session.sparkContext
    group = "crashmq one by one"

    def done(item: Item) -> Result:
        with in_sentences():
            context.setJobGroup(group, group, interruptOnCancel=True)
            (result,) = context.parallelize([item], 1).map(work).collect()
        return result

    with ThreadPoolExecutor(context.defaultParallelism, "crashmq-job") as threads:
        waiting = [threads.submit(done, item) for item in items]
        try:
            for one in as_completed(waiting):
                yield one.result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            cancel(context, group, waiting)


def cancel(context: SparkContext, group: str, running: Collection[Future[Any]]) -> None:
    """Cancel the jobs of a group until the threads that wait for them have ended.

    It is repeated, since Spark may not have received a job yet.
    """
    while not all(one.done() for one in running):
        with suppress(Exception):  # Spark is gone, and its jobs with it
            context.cancelJobGroup(group)
        wait(running, _POLL_S)


def _start_jvm(conf: SparkConf, log_path: Path) -> None:
    with log_path.open("ab") as log:
        try:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]  # not annotated
                conf, {"stdout": log, "stderr": log}
            )
        except PySparkException as error:
            raise NotInstalled(
                f"Spark's JVM ended as it started ({error.getCondition()}); "
                f"{log_path} says why."
            ) from None
    context = SparkContext(conf=conf, gateway=gateway)
    if context._jsc.sc().isStopped():
        raise EnvironmentMissing(
            f"the Spark master at {conf.get('spark.master')} did not take this "
            f"application; {log_path} and the master's own log say why."
        )


def _conf(master: str | None, scratch: Path, extra: Mapping[str, str]) -> SparkConf:
    conf = SparkConf()
    if master is not None:
        conf.setMaster(master)
    conf.setIfMissing("spark.master", DEFAULT_MASTER)
    chosen = conf.get("spark.master")
    assert chosen is not None
    settings = _settings() | (_local_settings(scratch) if is_local(chosen) else {})
    for key, value in (settings | dict(extra)).items():
        conf.setIfMissing(key, value)
    return conf


def _scratch_of(run_dir: Place) -> Path:
    if isinstance(run_dir, Path):
        return run_dir.absolute() / SPARK_DIR
    name = hashlib.sha256(str(run_dir).encode()).hexdigest()[:16]
    return default_cache_dir() / SPARK_DIR / name


def _python_of(conf: SparkConf) -> str:
    """The Python of executors: ours on this machine, else the configured one."""
    chosen = conf.get("spark.master")
    assert chosen is not None
    if is_local(chosen):
        return sys.executable
    named = os.environ.get("PYSPARK_PYTHON") or conf.get("spark.pyspark.python")
    return named or sys.executable


def _settings() -> dict[str, str]:
    settings = {
        "spark.app.name": "crashmq",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
        "spark.task.maxFailures": str(ATTEMPTS),
        # A worker must not take what lies in the current directory for ours.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
    }
    imported_from = str(Path(crashmq.__file__).resolve().parent.parent)
    if imported_from not in site.getsitepackages():
        # A checkout; on another machine the path is simply not there.
        settings["spark.executorEnv.PYTHONPATH"] = imported_from
    return settings


def _local_settings(scratch: Path) -> dict[str, str]:
    return {
        "spark.driver.memory": "2g",
        # The first compiler alone: a report's queries end before the second pays. With
        # it, a report of 20,000 episodes took 11.4 s instead of 8.5, of 400,000 21.2
        # instead of 16.6.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "spill"),
    }


def _environment_of_a_start() -> dict[str, str]:
    configured = os.environ.get("SPARK_CONF_DIR", str(_HERE / "conf"))
    return {"JAVA_HOME": str(java_home()), "SPARK_CONF_DIR": configured}


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
