"""Builds the stand-ins for NVIDIA's libraries with the system's C compiler, one copy per place that needs one."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent / "native"


@dataclass(frozen=True)
class StandinLibrary:
    """A library of its own with its own table, which it reads again whenever it changes."""

    path: Path

    def tell(self, **table: Any) -> None:
        """Replaces the table at once: `all={…}` for every GPU, `gpus={"5": {…}}` for one."""
        part = self.path.with_name(self.path.name + ".json.part")
        part.write_text(json.dumps(table))
        part.rename(self.path.with_name(self.path.name + ".json"))


def nvml_library(folder: Path, *, is_old: bool = False, **table: Any) -> StandinLibrary:
    """`libnvidia-ml.so.1` in the folder; `is_old` leaves out what drivers before 535 did not have."""
    return _placed("nvml.c", folder / "libnvidia-ml.so.1", ("-DOLD_DRIVER",) * is_old, table)


def cuda_library(folder: Path, **table: Any) -> StandinLibrary:
    """`libcuda.so.1` in the folder."""
    return _placed("cuda.c", folder / "libcuda.so.1", (), table)


def _placed(
    source: str, target: Path, flags: tuple[str, ...], table: dict[str, Any]
) -> StandinLibrary:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_built(source, flags), target)
    library = StandinLibrary(target)
    if table:
        library.tell(**table)
    return library


@functools.cache
def _built(source: str, flags: tuple[str, ...]) -> Path:
    folder = tempfile.mkdtemp(prefix="rca-standin-")
    owner = os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, ignore_errors=True))
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "no C compiler; run: apt-get install gcc libc6-dev"
    target = Path(folder) / "library.so"
    words = ["-O2", "-shared", "-fPIC", "-Wall", "-Wno-format-truncation", *flags]
    subprocess.run([compiler, *words, "-o", str(target), str(SOURCES / source), "-ldl"], check=True)
    return target
