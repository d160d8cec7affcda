from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crashmq.reports.errors import BadMaster, EnvironmentMissing
from crashmq.reports.jvm import java_home
from crashmq.reports.masters import check_master, greeting, is_local, is_refusal

MASTER_CLASS = "org.apache.spark.deploy.master.Master"
# What a master of Spark 4.3 said to the greeting; the slow test below asks a real one.
REFUSAL = (
    b"\x00\x00\x00\x00\x00\x00\x00\x57\x08\x00\x00\x00\x17/files/crashmq-greeting"
    b"\x00\x00\x00\x2fStream '/files/crashmq-greeting' was not found."
)


@contextmanager
def a_server(answer: bytes | None) -> Iterator[str]:
    """One that takes one greeting and gives ``answer``; None: holds its tongue."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                if answer is None:
                    connection.recv(4096)  # until the other side gives up
                else:
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(timeout=10)


def a_closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    "master", ["local", "local[*]", "local[2]", "local[2,4]", "local-cluster[2,1,1024]"]
)
def test_a_master_on_this_machine_needs_no_connection(master: str) -> None:
    check_master(master)

    assert is_local(master)


@pytest.mark.parametrize(
    "master", ["", "here", "local[", "spark://", "spark://host", "http://host:1"]
)
def test_an_address_spark_does_not_know_is_refused(master: str) -> None:
    with pytest.raises(BadMaster, match="is no master of Spark; give local"):
        check_master(master)


def test_a_master_that_answers_is_taken() -> None:
    with a_server(REFUSAL) as address:
        check_master(f"spark://{address}")


def test_one_of_several_masters_is_enough() -> None:
    with a_server(REFUSAL) as address:
        check_master(f"spark://{a_closed_port()},{address}")


def test_a_closed_port_is_told_in_one_sentence() -> None:
    master = f"spark://{a_closed_port()}"

    with pytest.raises(EnvironmentMissing) as refusal:
        check_master(master)

    assert str(refusal.value).startswith(f"no Spark master answers at {master} (")
    assert "leave --master out" in str(refusal.value)


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 400 Bad Request" + b" " * 40, REFUSAL[:20]],
)
def test_a_port_that_speaks_anything_else_is_no_master(answer: bytes) -> None:
    with (
        a_server(answer) as address,
        pytest.raises(EnvironmentMissing, match="who answers there is no Spark master"),
    ):
        check_master(f"spark://{address}")


def test_a_silent_port_is_not_waited_for_longer_than_told() -> None:
    with (
        a_server(None) as address,
        pytest.raises(EnvironmentMissing, match="timed out"),
    ):
        check_master(f"spark://{address}", timeout_s=0.05)


def test_a_port_that_does_not_exist_is_told_like_a_closed_one() -> None:
    with pytest.raises(EnvironmentMissing, match="no Spark master answers"):
        check_master("spark://127.0.0.1:70000")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_real_master_answers_as_the_fake_one_does(tmp_path: Path) -> None:
    host, port = a_closed_port().split(":")

    with a_real_master(host, port, tmp_path):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(greeting())
            answer = connection.recv(4096)
        check_master(f"spark://{host}:{port}")

    assert is_refusal(answer)
    assert answer == REFUSAL


@contextmanager
def a_real_master(host: str, port: str, cache: Path) -> Iterator[None]:
    """A standalone master of Spark, once it says that it leads."""
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
    try:
        java = java_home(cache)
    except EnvironmentMissing as error:
        pytest.skip(str(error))
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), MASTER_CLASS, "--host", host]
    master = subprocess.Popen(
        [*command, "--port", port, "--webui-port", "0"],
        env=dict(os.environ, JAVA_HOME=str(java), SPARK_HOME=str(home)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    bound = threading.Timer(60, master.kill)
    bound.start()
    try:
        assert master.stdout is not None
        assert any(b"I have been elected leader" in line for line in master.stdout)
        yield
    finally:
        bound.cancel()
        master.kill()
        master.communicate()
