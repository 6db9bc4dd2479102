"""Console frames of ``k230_runner``: progress lines with a CRC-16 (docs/formats.md).

The kernel of the board writes its own lines at any moment, also into the middle of ours. A frame
is therefore looked for inside whatever came, and one that a kernel message tore apart is put
together again; the CRC and the strict form of each kind decide, so a damaged frame is dropped
and never misread. Frames are progress only: results come from the results file.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

FRAME_MAX = 120
"""Longest frame in characters, CRC included."""

_MARK = "@K230 "
_CRC = re.compile(r"\*([0-9a-f]{4})")
_RUN = r"run=([A-Za-z0-9._-]{1,32})"
_FORMS = {
    "begin": re.compile(rf"{_RUN} total=(\d+) resumed=(\d+)"),
    "item": re.compile(rf"{_RUN} seq=(\d+) id=(\d+) status=(-?\d+) ms=(\d+\.\d+)"),
    "end": re.compile(rf"{_RUN} ok=(\d+) failed=(\d+) records=(\d+) load_ms=(\d+\.\d+)"),
    "fail": re.compile(rf'{_RUN} code=([a-z]+) reason="([^"*]*)"'),
}
_NAMES = {
    "begin": ("run", "total", "resumed"),
    "item": ("run", "seq", "id", "status", "ms"),
    "end": ("run", "ok", "failed", "records", "load_ms"),
    "fail": ("run", "code", "reason"),
}
# What a kernel message begins with: an ANSI colour, "[E/LWP]", "<s_fs#…>", "(assertion)".
_NOISE_STARTS = "\x1b[<("
_HEADS_KEPT = 3


@dataclass(frozen=True)
class Frame:
    """One frame.

    Attributes:
        kind: ``begin``, ``item``, ``end`` or ``fail``.
        run: the run id; ``-`` when the runner failed before it knew it.
        fields: the other values as text, e.g. ``{"seq": "0", "id": "17", …}``.
    """

    kind: str
    run: str
    fields: Mapping[str, str] = field(default_factory=dict)

    def integer(self, name: str) -> int:
        """The value of a counting field.

        Raises:
            KeyError: this kind of frame has no such field.
        """
        return int(self.fields[name])

    def number(self, name: str) -> float:
        """The value of a field in milliseconds.

        Raises:
            KeyError: this kind of frame has no such field.
        """
        return float(self.fields[name])


def crc16(data: bytes) -> int:
    """CRC-16/CCITT-FALSE."""
    return binascii.crc_hqx(data, 0xFFFF)


def format_frame(frame: Frame) -> str:
    """The line of a frame, without the newline (for tests and simulators).

    Raises:
        ValueError: its kind is unknown, a field is missing or the line would be too long.
    """
    names = _NAMES.get(frame.kind)
    if names is None or set(frame.fields) != set(names[1:]):
        raise ValueError(f"no frame can be made of {frame}")
    words = [f"run={frame.run}"]
    for name in names[1:]:
        value = frame.fields[name]
        words.append(f'{name}="{value}"' if name == "reason" else f"{name}={value}")
    body = f"{_MARK}{frame.kind} {' '.join(words)}"
    line = f"{body}*{crc16(body.encode('ascii')):04x}"
    if len(line) > FRAME_MAX or parse_frame(line) != frame:
        raise ValueError(f"no frame can be made of {frame}")
    return line


def parse_frame(text: str) -> Frame | None:
    """The frame that ``text`` is, from its ``@`` to the last digit of its CRC, or nothing."""
    body, star, digits = text.rpartition("*")
    if not star or not body.startswith(_MARK) or len(text) > FRAME_MAX or not body.isascii():
        return None
    if not _CRC.fullmatch(f"*{digits}") or crc16(body.encode("ascii")) != int(digits, 16):
        return None
    kind, _, rest = body[len(_MARK) :].partition(" ")
    form = _FORMS.get(kind)
    match = form.fullmatch(rest) if form else None
    if match is None:
        return None
    names = _NAMES[kind]
    values = match.groups()
    return Frame(kind, values[0], dict(zip(names[1:], values[1:], strict=True)))


class FrameReader:
    """Finds frames in console text that arrives in pieces."""

    def __init__(self) -> None:
        self._line = ""
        self._heads: list[str] = []

    def feed(self, text: str) -> list[Frame]:
        """Take more console text and return the frames that it completed, in order."""
        *complete, self._line = (self._line + text).replace("\r", "\n").split("\n")
        # A console that never sends a newline must not fill the memory.
        self._line = self._line[-4096:]
        return [frame for line in complete if line for frame in self._in_line(line)]

    def _in_line(self, line: str) -> Iterator[Frame]:
        found = False
        position = 0
        while (start := line.find(_MARK, position)) >= 0:
            following = line.find(_MARK, start + 1)
            stop = following if following >= 0 else len(line)
            whole = _whole(line[start:stop])
            if whole is not None:
                found = True
                yield whole
            else:
                self._heads = [*self._heads, line[start:stop]][-_HEADS_KEPT:]
            position = stop
        if found or _MARK in line:
            return
        for head in reversed(self._heads):
            frame = _joined(head, line)
            if frame is not None:
                self._heads.remove(head)
                yield frame
                return


def _at_start(text: str) -> Frame | None:
    """The frame that ``text`` begins with."""
    for match in _CRC.finditer(text, 0, FRAME_MAX):
        frame = parse_frame(text[: match.end()])
        if frame is not None:
            return frame
    return None


def _whole(text: str) -> Frame | None:
    """The frame that ``text`` begins with, with at most one message inside it."""
    frame = _at_start(text)
    if frame is not None:
        return frame
    for cut, char in enumerate(text[:FRAME_MAX]):
        if char not in _NOISE_STARTS:
            continue
        for resume in range(cut + 1, len(text)):
            frame = _at_start(text[:cut] + text[resume:])
            if frame is not None:
                return frame
    return None


def _joined(head: str, tail: str) -> Frame | None:
    """The frame that begins in ``head``, was torn by a message, and goes on in ``tail``."""
    for cut in range(len(head), len(_MARK) - 1, -1):
        if cut == len(head) or head[cut] in _NOISE_STARTS:
            frame = _at_start(head[:cut] + tail)
            if frame is not None:
                return frame
    return None
