"""The toolchain file for RT-Smart, with Debian's cross compiler under the names of the SDK's.

The real compiler, linker script and libraries are not here; option handling, the link line and
the errors are the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from k230_lib.errors import RunnerError
from k230_lib.runner.build import BuildRequest, build_runner, failure_reason
from k230_lib.runner.elf import parse_elf
from k230_lib.runner.targets import RTSMART_ENTRY
from k230_lib.runner.tools import find_build_tools

REPOSITORY = Path(__file__).resolve().parents[3]
CROSS = "riscv64-linux-gnu"
SDK_NAME = "riscv64-unknown-linux-musl"

pytestmark = pytest.mark.skipif(
    shutil.which(f"{CROSS}-g++") is None, reason=f"no {CROSS}-g++ on this machine"
)


@dataclass(frozen=True)
class StandIn:
    toolchain: Path
    sdk: Path

    @property
    def defines(self) -> tuple[str, ...]:
        return (f"K230_TOOLCHAIN={self.toolchain}", f"K230_SDK={self.sdk}")


# Debian's C library is compiled for low addresses and cannot be linked at 8 GiB, the SDK's can:
# here start-up code stands in for both libraries.
START_UP = """
extern int main(void);
int stand_in_for_rtthread(void) { return 1; }
__attribute__((section(".text.start"))) void _start(void) { main(); for (;;) {} }
"""
LINK_SCRIPT = f"""
OUTPUT_ARCH(riscv)
ENTRY(_start)
SECTIONS {{
  . = {RTSMART_ENTRY:#x};
  .text : {{ *(.text.start) *(.text .text.*) }}
  .data : {{ *(.rodata .rodata.* .data .data.* .sdata .sdata.*) }}
  .bss : {{ *(.bss .bss.* .sbss .sbss.*) }}
  /DISCARD/ : {{ *(.note.*) }}
}}
"""


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    root = tmp_path_factory.mktemp("sdk")
    tools = root / "toolchain" / "bin"
    tools.mkdir(parents=True)
    for tool in ("gcc", "g++", "ar", "ranlib", "ld", "nm", "objcopy", "strip"):
        wrapper = tools / f"{SDK_NAME}-{tool}"
        alone = " -nostdlib" if tool in ("gcc", "g++") else ""
        wrapper.write_text(f'#!/bin/sh\nexec {CROSS}-{tool}{alone} "$@"\n')
        wrapper.chmod(0o755)
    script = root / "k230_sdk/src/big/mpp/userapps/sample/linker_scripts/riscv64/link.lds"
    script.parent.mkdir(parents=True)
    script.write_text(LINK_SCRIPT)
    library = root / "k230_sdk/src/big/rt-smart/userapps/sdk/rt-thread/lib"
    library.mkdir(parents=True)
    (root / "rt.c").write_text(START_UP)
    compile_it = [f"{CROSS}-gcc", "-mcmodel=medany", "-c", "rt.c", "-o", "rt.o"]
    subprocess.run(compile_it, cwd=root, check=True)
    subprocess.run([f"{CROSS}-ar", "rc", library / "librtthread.a", "rt.o"], cwd=root, check=True)
    return StandIn(root / "toolchain", root / "k230_sdk")


def configure(folder: Path, *defines: str) -> subprocess.CompletedProcess[str]:
    """Configure and build a program of one line with the toolchain file."""
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.28)\nproject(probe CXX)\nadd_executable(probe main.cpp)\n"
    )
    (folder / "main.cpp").write_text("int main() { return 0; }\n")
    found = find_build_tools()
    toolchain = REPOSITORY / "kernels/toolchains/k230_rtsmart.cmake"
    command = [str(found.cmake), "-S", ".", "-B", "build", "-G", "Ninja"]
    command += [f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", f"-DCMAKE_MAKE_PROGRAM={found.ninja}"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("K230_")}
    done = subprocess.run(
        [*command, *(f"-D{define}" for define in defines)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return done
    return subprocess.run(
        [found.cmake, "--build", "build", "--verbose"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_program_is_static_at_the_entry_of_rt_smart(stand_in: StandIn, tmp_path: Path) -> None:
    done = configure(tmp_path, *stand_in.defines)
    assert done.returncode == 0, done.stdout
    data = (tmp_path / "build" / "probe").read_bytes()
    elf = parse_elf(data)
    assert elf.static
    assert (elf.machine, elf.kind, elf.entry) == ("riscv64", "executable", RTSMART_ENTRY)
    assert elf.has_vector
    # nothing refers to it: it is there because the whole archive is linked
    assert b"stand_in_for_rtthread" in data
    link = next(line for line in done.stdout.splitlines() if " -o probe" in line)
    for option in ("-march=rv64imafdcv", "-mabi=lp64d", "-mcmodel=medany", "-static", " -n "):
        assert option in link
    assert f"-T {stand_in.sdk}/src/big" in link
    assert "--whole-archive -lrtthread -Wl,--no-whole-archive" in link


def test_what_is_missing_is_named(stand_in: StandIn, tmp_path: Path) -> None:
    cases = {
        (f"K230_TOOLCHAIN={tmp_path}/no", f"K230_SDK={stand_in.sdk}"): (
            f"no compiler at {tmp_path}/no/bin/{SDK_NAME}-g++: set K230_TOOLCHAIN"
        ),
        (f"K230_TOOLCHAIN={stand_in.toolchain}", f"K230_SDK={tmp_path}/no"): (
            f"no linker script at {tmp_path}/no/src/big"
        ),
        (*stand_in.defines, f"K230_RTTHREAD_LIB={tmp_path}/no"): (
            f"no librtthread.a in {tmp_path}/no: build the SDK's"
        ),
    }
    for number, (defines, message) in enumerate(cases.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = configure(folder, *defines)
        assert done.returncode != 0
        reason = failure_reason((done.stdout + done.stderr).splitlines())
        assert reason.startswith(message), reason


def test_a_runner_for_rt_smart_needs_a_prefix(stand_in: StandIn, tmp_path: Path) -> None:
    request = BuildRequest(
        "portable", "k230-rtsmart", REPOSITORY / "kernels", tmp_path, defines=stand_in.defines
    )
    with pytest.raises(RunnerError, match="needs an ExecuTorch that was installed for it"):
        build_runner(request)
