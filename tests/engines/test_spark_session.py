"""What stands in the way of Spark is said in one line, before anything starts."""

import os
import socket

import pytest

from sdckit.engines import files as spark_packages
from sdckit.engines import spark as sessions
from sdckit.engines.spark import spark_session


@pytest.fixture(autouse=True)
def no_session(monkeypatch):
    """No session is running, and none is started."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", classmethod(lambda _: None))
    monkeypatch.setattr(sessions, "_start", lambda *_: pytest.fail("Spark was started"))


@pytest.fixture
def java(monkeypatch):
    monkeypatch.setattr(sessions, "_require_java", lambda: None)


def test_no_java_on_the_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(
        OSError, match=r"none on the PATH; install Java 17, e.g. Debian's openjdk-17-jre-headless"
    ):
        spark_session()


def test_a_java_home_without_java(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(OSError, match=r"there is none in JAVA_HOME \(.*\); install Java 17"):
        spark_session()


@pytest.mark.parametrize(
    ("says", "have"), [('openjdk version "11.0.2"', "is version 11"), ("dyld: broken", "does not run")]
)
def test_a_java_that_is_too_old_or_broken(monkeypatch, tmp_path, says, have):
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(OSError, match=f"Spark needs Java 17, and .*java {have}; install Java 17"):
        spark_session()


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow", "pandas"])
def test_a_package_is_missing(monkeypatch, missing):
    monkeypatch.setattr(spark_packages, "find_spec", lambda name: None if name == missing else name)
    with pytest.raises(ImportError, match=f'there is no {missing}; run pip install "sdckit\\[spark\\]"'):
        spark_session()


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("master", ["host:7077", "spark://host", "spark://:7077", "http://host:7077"])
def test_an_address_that_is_none(master):
    with pytest.raises(ValueError, match=f"master is '{master}'; give "):
        spark_session(master)


@pytest.mark.usefixtures("java")
def test_nobody_answers():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"spark://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(
            OSError, match=rf"no Spark master answers at {address} \(.*refused\); check the address"
        ):
            spark_session(address)


def test_settings_keep_local_sessions_to_this_machine(monkeypatch):
    for master in ("local[*]", "spark://127.0.0.1:7077", "spark://localhost:7077"):
        assert sessions._settings(master)["spark.driver.bindAddress"] == "127.0.0.1"  # noqa: SLF001
    assert "spark.driver.host" not in sessions._settings("spark://10.0.0.1:7077")  # noqa: SLF001
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    with sessions._spark_variables("local[*]"):  # noqa: SLF001
        assert os.environ["PYSPARK_PYTHON"] == "./environment/bin/python"
        assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert "SPARK_LOCAL_IP" not in os.environ
