"""What the text of a serial console means: pure functions over bytes and strings.

The RT-Smart shell (*msh*) prints the prompt ``msh /cwd>`` without a newline, has no exit status,
and the kernel may put whole lines anywhere, also in the middle of one of ours. Everything that has
to be told from such text is decided here, so that it can be tested with transcripts.
"""

from __future__ import annotations

import codecs
import re
from enum import Enum, auto

LINE_LIMIT = 1024
"""msh drops a line that reaches this many characters (FINSH_CMD_SIZE)."""

ARGUMENT_LIMIT = 100
"""msh cuts the arguments of a command off after this many (FINSH_ARG_MAX)."""

PROMPT = re.compile(r"(?:^|\n)msh (/[^>\r\n]*)>")
_PROMPT_AT_END = re.compile(r"(?:^|\n)msh (/[^>\r\n]*)>\s*\Z")
_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[()][A-Za-z0-9]|[=>78cDEHMNOZ])")
_ANSI_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[()]?)\Z")
_ANSI_LONGEST = 32

_BOOT = re.compile(
    r"U-Boot SPL|Thread (?:Smart )?Operating System|OpenSBI v\d|^\s*\\ \| /\s*$", re.MULTILINE
)
# The demo that the stock image starts at boot; that image prints no banner.
_DEMO = re.compile(r"press 'q' to exit application|^msh />case /bin/fastboot_app")
_CRASH = re.compile(
    r"\[FATAL ERROR\] Exception[^\n]*|User Fault, killing thread[^\n]*|Memory exhaustion![^\n]*"
    r"|Segmentation fault[^\n]*"
)
_KERNEL_DEAD = re.compile(
    r"^(?:Unhandled Exception \d+:[^\n]*|\([^\n]*\) assertion failed at function:[^\n]*)",
    re.MULTILINE,
)
_NOISE = re.compile(
    r"^\s*(?:\[[A-Z]/[^\]]*\]|<s_fs#|sharefs[: ]|\[[IWED]\] |mmcsd|\[ *\d+\.\d+\] )"
)
_LINUX = re.compile(
    r"(?:^|\n)(?:\[[^\]\n]*@[^\]\n]*\]\s?[#$]|[\w.-]+@[\w.-]+:[^\n]*[#$]|[~/][^\s]* ?[#$]|[#$]"
    r"|[\w.-]+ login:|Password:)\s*\Z"
)
_LINUX_ANSWER = re.compile(r"-?(?:sh|ash|bash): (?:\d+: )?\S+: not found|Login incorrect")
_UBOOT = re.compile(r"(?:^|\n)(?:K230 ?#|=>|U-Boot>)\s*\Z|Unknown command '", re.MULTILINE)
_NOT_FOUND = re.compile(r"^(\S+): command not found\.\s*$", re.MULTILINE)


class Speaker(Enum):
    """Who answers on a console."""

    MSH = auto()
    LINUX = auto()
    UBOOT = auto()
    UNKNOWN = auto()


class TextStream:
    """Turns the raw bytes of a console into clean text, piece by piece.

    ANSI sequences and NUL are removed, ``\\r\\n`` becomes ``\\n``; undecodable bytes are replaced.
    Sequences that are cut by the end of a piece are held back until the next one.
    """

    def __init__(self) -> None:
        self._held = b""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def feed(self, data: bytes) -> str:
        """Take the next bytes and return the text that is certain by now."""
        data = self._held + data
        self._held = b""
        unfinished = _ANSI_UNFINISHED.search(data)
        if unfinished and len(data) - unfinished.start() < _ANSI_LONGEST:
            self._held = data[unfinished.start() :]
            data = data[: unfinished.start()]
        if b"\x1b" in data:
            data = _ANSI.sub(b"", data)
        if data.endswith(b"\r"):
            self._held = b"\r" + self._held
            data = data[:-1]
        return self._decode(data.replace(b"\r\n", b"\n").replace(b"\0", b""))


class BoundedText:
    """Keeps the beginning and the end of a text of any length.

    Args:
        head: characters kept of the beginning.
        tail: characters kept of the end.
    """

    def __init__(self, head: int = 1 << 16, tail: int = 1 << 18) -> None:
        self._head_limit, self._tail_limit = head, tail
        self._head = ""
        self._tail = ""
        self.dropped = 0

    def add(self, text: str) -> None:
        """Append ``text``."""
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        self._tail += text
        if len(self._tail) > 2 * self._tail_limit:
            self.dropped += len(self._tail) - self._tail_limit
            self._tail = self._tail[-self._tail_limit :]

    @property
    def text(self) -> str:
        """What was kept; a line in the middle says how much was not."""
        if not self.dropped:
            return self._head + self._tail
        return f"{self._head}\n... {self.dropped} characters not kept ...\n{self._tail}"

    def last(self, count: int) -> str:
        """The last ``count`` characters."""
        if len(self._tail) >= count:
            return self._tail[-count:]
        return (self._head + self._tail)[-count:] if not self.dropped else self._tail


def prompt_at_end(text: str) -> str | None:
    """The working directory in the prompt that ``text`` ends with, or None."""
    match = _PROMPT_AT_END.search(text)
    return match.group(1) if match else None


def speaker(text: str) -> Speaker:
    """Who wrote the end of ``text``."""
    if PROMPT.search(text):
        return Speaker.MSH
    if _UBOOT.search(text):
        return Speaker.UBOOT
    if _LINUX.search(text) or _LINUX_ANSWER.search(text):
        return Speaker.LINUX
    return Speaker.UNKNOWN


def boot_started(text: str) -> bool:
    """Does the text contain the banner of a starting board?"""
    return _BOOT.search(text) is not None


def demo_started(text: str) -> bool:
    """Does the text come from the demo that runs after a boot?"""
    return _DEMO.search(text) is not None


def crash_text(text: str) -> str | None:
    """The first line by which RT-Smart tells that a user program died, or None."""
    match = _CRASH.search(text)
    return match.group(0).strip() if match else None


def kernel_death(text: str) -> str | None:
    """The line by which the RT-Smart kernel says that it stopped, or None."""
    match = _KERNEL_DEAD.search(text)
    return match.group(0).strip() if match else None


def is_noise(line: str) -> bool:
    """Is this whole line a message of the kernel and no output of a program?"""
    return not line.strip() or _NOISE.match(line) is not None


def command_not_found(output: str) -> str | None:
    """The name that msh could not run (no such file, bad ELF or no memory), or None."""
    match = _NOT_FOUND.search(output)
    return match.group(1) if match else None


def echoed(wanted: str, seen: str) -> bool:
    """Is ``seen`` the echo of ``wanted``, when whole foreign lines may lie inside?

    The kernel writes complete lines, so whatever is foreign ends with a newline, and an echo has
    none. All possible places where a foreign line may begin are followed at once.
    """
    *foreign, rest = seen.split("\n")
    reached = {0}
    for line in foreign:
        following = set()
        for position in reached:
            following.add(position)
            for step, char in enumerate(line, start=1):
                at = position + step
                if at > len(wanted) or wanted[at - 1] != char:
                    break
                following.add(at)
        reached = following
    return any(wanted[position:] == rest for position in reached)


def check_line(line: str) -> str | None:
    """Why msh could not take this line as typed, or None when it can."""
    if len(line) >= LINE_LIMIT:
        return f"the line has {len(line)} characters, msh takes less than {LINE_LIMIT}"
    count = len(line.split())
    if count > ARGUMENT_LIMIT:
        return f"the line has {count} words, msh takes {ARGUMENT_LIMIT}"
    for char in line:
        if not " " <= char <= "~":
            return f"the line contains {char!r}, which cannot be typed at msh"
    return None


def excerpt(text: str, lines: int = 12, width: int = 200) -> str:
    """The last lines of ``text`` on one line, for an error message."""
    kept = [line.strip()[:width] for line in text.splitlines() if line.strip()]
    return " | ".join(kept[-lines:])
