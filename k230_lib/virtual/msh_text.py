"""What msh reads and writes, as pure functions: line splitting, path lookup order, fault texts."""

from __future__ import annotations

import posixpath
import signal

MAX_LINE = 1024
MAX_ARGUMENTS = 100
# Arguments, environment and auxiliary vector share one page of the new process.
ARGUMENT_AREA_BYTES = 4096
ARGUMENT_AREA_RESERVED = 512

BUILTINS = {
    "help": "RT-Thread shell help.",
    "ps": "List threads in the system.",
    "free": "Show the memory usage in the system.",
    "ls": "List information about the FILEs.",
    "cp": "Copy SOURCE to DEST.",
    "mv": "Rename SOURCE to DEST.",
    "cat": "Concatenate FILE(s)",
    "rm": "Remove(unlink) the FILE(s).",
    "cd": "Change the shell working directory.",
    "pwd": "Print the name of the current working directory.",
    "mkdir": "Create the DIRECTORY.",
    "df": "disk free",
    "echo": "echo string to file",
    "kill": "send a signal to a process",
    "killall": "kill processes by name",
    "list_page": "show page info",
    "list_process": "list process",
    "list_thread": "list thread",
    "date": "get date and time or set",
    "clear": "clear the terminal screen",
    "reboot": "reboot the system",
}

_EXCEPTIONS = {
    signal.SIGILL: (2, "Illegal Instruction"),
    signal.SIGBUS: (5, "Load Access Fault"),
    signal.SIGFPE: (2, "Illegal Instruction"),
    signal.SIGSEGV: (13, "Load Page Fault"),
    # musl's abort() ends by writing to address 0
    signal.SIGABRT: (15, "Store/AMO Page Fault"),
    signal.SIGTRAP: (3, "Breakpoint"),
    signal.SIGSYS: (2, "Illegal Instruction"),
}


def split_line(line: str) -> list[str]:
    """Split a command line as msh does.

    Blanks separate; only a double quote at the start of a token quotes, and a backslash in it
    shields the next character but stays. Nothing else is special.
    """
    tokens: list[str] = []
    at = 0
    while at < len(line):
        if line[at] in " \t":
            at += 1
        elif line[at] == '"':
            end = at + 1
            while end < len(line) and line[end] != '"':
                end += 2 if line[end] == "\\" else 1
            tokens.append(line[at + 1 : end])
            at = end + 1
        else:
            end = at
            while end < len(line) and line[end] not in " \t":
                end += 1
            tokens.append(line[at:end])
            at = end
    return tokens


def absolute(cwd: str, path: str) -> str:
    """``path`` as seen from ``cwd``, without ``.`` and ``..``."""
    joined = posixpath.normpath(posixpath.join(cwd, path))
    # normpath keeps a leading double slash, msh does not
    return "/" + joined.lstrip("/")


def program_candidates(cwd: str, name: str) -> list[str]:
    """The files msh tries for a command word, in order."""
    names = [name] if name.endswith(".elf") else [name, f"{name}.elf"]
    found = [absolute(cwd, each) for each in names]
    if "/" not in name:
        found += [f"/bin/{each}" for each in names]
    return found


def arguments_fit(arguments: list[str]) -> bool:
    """Whether exec has room for ``arguments``."""
    size = sum(len(each.encode("utf-8", "surrogateescape")) + 1 + 8 for each in arguments)
    return size <= ARGUMENT_AREA_BYTES - ARGUMENT_AREA_RESERVED


def not_found(name: str) -> str:
    return f"{name}: command not found.\n"


def open_failed(path: str) -> str:
    """What the kernel prints when a file on /sharefs cannot be opened."""
    return f"\x1b[33m<s_fs#dfs_sharefs_open-275#>:open /sharefs/{path[8:]} failed\n\x1b[0m"


def crash_report(name: str, number: int) -> str:
    """The kernel's report of a program that died of signal ``number``; empty for quiet ends."""
    try:
        known = signal.Signals(number)
    except ValueError:
        return ""
    if known not in _EXCEPTIONS:
        return ""
    code, title = _EXCEPTIONS[known]
    pc = 0x200012344
    registers = "".join(
        f"{left:>12}:0x{0:016x}{right:>12}:0x{0:016x}\n"
        for left, right in (("ra", "sp"), ("gp", "tp"), ("a0", "a1"), ("s0", "s1"))
    )
    return (
        f"[E/DBG] [FATAL ERROR] Exception {code}:{title}\n"
        f"[E/DBG] scause:0x{code:016x},stval:0x{0:016x},sepc:0x{pc:016x}\n"
        "--------------Dump Registers-----------------\n"
        f"{registers}"
        f"riscv64-unknown-linux-musl-addr2line -e {name} -a -f 0x{pc:x}\n"
        f"[E/DBG] User Fault, killing thread: {name}\n"
    )


def help_text() -> str:
    lines = [f"{name:<16} - {text}\n" for name, text in BUILTINS.items()]
    return "RT-Thread shell commands:\n" + "".join(lines) + "\n"
