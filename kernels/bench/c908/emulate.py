"""Builds the bench and the plugin, and runs programs under the instrumented emulator."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1]
TOOLCHAIN = BENCH.parent / "toolchains" / "riscv64_linux_gnu.cmake"
PLUGIN_SOURCE = BENCH / "plugin" / "blockprofile.c"
# the C908: RVV 1.0 with 128 bits, Zba, Zbb
CPU = "rv64,v=true,vlen=128,elen=64,vext_spec=v1.0,zba=true,zbb=true"


class ToolError(Exception):
    """A program is missing or failed; the message is for the user."""


@dataclass(frozen=True)
class Built:
    """The bench for riscv64 and the plugin for the emulator."""

    program: Path
    plugin: Path


def _tool(name: str, package: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if found is None:
        raise ToolError(f"{name} is not installed: apt-get install {package}")
    return found


def _run(command: Sequence[str | Path], timeout: float = 1800) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        words = " ".join(map(str, command))
        tail = (done.stdout + done.stderr)[-3000:]
        raise ToolError(f"{words}\nended with {done.returncode}:\n{tail}")
    return done.stdout


def build_bench(folder: Path, toolchain: Path = TOOLCHAIN) -> Path:
    """Configures and builds k230_bench in `folder`; returns the program."""
    cmake = _tool("cmake", "cmake")
    options = [f"-DCMAKE_TOOLCHAIN_FILE={toolchain.resolve()}"]
    _run([cmake, "-S", BENCH, "-B", folder, *options])
    _run([cmake, "--build", folder, "--parallel", "2"])
    return folder / "k230_bench"


def build_plugin(folder: Path) -> Path:
    """Compiles the plugin for this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    plugin = folder / "blockprofile.so"
    compiler = _tool("gcc", "gcc")
    _run([compiler, "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", plugin, PLUGIN_SOURCE])
    return plugin.resolve()


def build_all(folder: Path) -> Built:
    """Both, below `folder`."""
    return Built(build_bench(folder / "riscv64"), build_plugin(folder))


def run_plain(program: Sequence[str | Path], cpu: str = CPU) -> str:
    """Runs a riscv64 program under qemu; returns its stdout."""
    return _run([_tool("qemu-riscv64", "qemu-user"), "-cpu", cpu, *program])


def run_profiled(
    program: Sequence[str | Path], plugin: Path, profile: Path, *, cache: bool = False
) -> str:
    """The same with the plugin, which writes `profile`."""
    qemu = _tool("qemu-riscv64", "qemu-user")
    # qemu looks for a plugin without a slash in its library path
    argument = f"{plugin.resolve()},out={profile.resolve()}" + (",cache=on" if cache else "")
    return _run([qemu, "-cpu", CPU, "-plugin", argument, *program])
