"""A Spark cluster of our own, for tests and benchmarks: a master, workers, executors, no network.

``local-cluster`` mode: each executor is a process with a JVM and Python workers of its own. All
that it writes, logs of executors and files of shuffles among it, goes to a folder of its own, which
is removed at the end.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

_OLDEST = 17
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A machine that is soon up, and slower later on."""


def spark_is_there() -> bool:
    """Return whether a cluster can be started here: PySpark, and a Java that it runs on."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or importlib.util.find_spec("pyspark") is None:
        return False
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', told)
    return version is not None and int(version[1]) >= _OLDEST


class LocalSpark:
    """A cluster that runs while it is entered, with so many executors of one core each."""

    def __init__(
        self, executors: int = 2, memory: int = 1024, settings: Mapping[str, str] | None = None
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="spark-"))
        self.master = f"local-cluster[{executors},1,{memory}]"
        self.memory = memory
        self.settings = dict(settings or {})

    def __enter__(self) -> Any:
        import pyspark
        from pyspark.sql import SparkSession

        # Executors keep their logs under the home of Spark, so it gets one here.
        for path in Path(pyspark.__file__).parent.iterdir():
            if path.name in ("bin", "jars", "sbin"):
                (self.folder / path.name).symlink_to(path)
        (self.folder / "tmp").mkdir()
        self.before = dict(os.environ)
        os.environ.update(
            PYSPARK_PYTHON=sys.executable,
            SPARK_HOME=str(self.folder),
            SPARK_LOCAL_DIRS=str(self.folder / "tmp"),
            SPARK_LOCAL_IP="127.0.0.1",
        )
        builder = SparkSession.builder.master(self.master)
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.executor.memory": f"{self.memory}m",
            "spark.driver.extraJavaOptions": _QUICK,
            "spark.executor.extraJavaOptions": _QUICK,
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            **self.settings,
        }.items():
            builder = builder.config(name, value)
        self.session = builder.getOrCreate()
        return self.session

    def logs(self) -> str:
        """Return what executors have written to their logs."""
        files = self.folder.glob("work/*/*/std*")
        return "".join(path.read_text(encoding="utf-8", errors="replace") for path in files)

    def executors(self) -> list[int]:
        """Return the ids of the processes that are executors of this cluster."""
        return [process.pid for process in self._executors()]

    def seconds(self) -> float:
        """Return the processor time of executors and their Python workers so far."""
        total = 0.0
        for executor in self._executors():
            for process in (executor, *executor.children(recursive=True)):
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def _executors(self) -> list[Any]:
        import psutil

        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                line = " ".join(process.cmdline())
                if "CoarseGrainedExecutorBackend" in line and str(self.folder) in line:
                    found.append(process)
        return found

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        gateway = self.session.sparkContext._gateway
        self.session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends with it
        gateway.proc.wait(timeout=60)
        from pyspark import SparkContext

        SparkContext._gateway = SparkContext._jvm = None
        os.environ.clear()
        os.environ.update(self.before)
        shutil.rmtree(self.folder, ignore_errors=True)
