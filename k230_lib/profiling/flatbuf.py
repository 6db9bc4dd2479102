"""Bounds-checked, column-wise reading of FlatBuffers.

The generated readers trust every offset of a file; a truncated or foreign one makes them raise odd
errors or, in C++, read past the end. Here each access is checked, nothing recurses, and many tables
of one kind are read at once with numpy: positions are ``int64[n]``, absolute in the file, and -1
stands for a field that is absent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]

ABSENT = -1
_VTABLE_HEAD = 4
_OFFSET_BYTES = 4


class DamagedBufferError(ValueError):
    """An offset or a length points outside of the file."""


class Buffer:
    """The bytes of one FlatBuffer and the checked ways to read them."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._bytes = np.frombuffer(data, dtype=np.uint8)

    def __len__(self) -> int:
        return len(self._data)

    def read(self, positions: Positions, dtype: str) -> npt.NDArray[Any]:
        """Values of little-endian ``dtype`` at ``positions`` (all present), shape [n].

        Raises:
            DamagedBufferError: one of them lies outside of the file.
        """
        width = np.dtype(dtype).itemsize
        if positions.size == 0:
            return np.empty(0, dtype=dtype)
        if positions.min() < 0 or positions.max() > len(self._data) - width:
            raise DamagedBufferError("an offset points outside of the file")
        gathered = self._bytes[positions[:, None] + np.arange(width)]
        return np.ascontiguousarray(gathered).view(dtype).reshape(-1)

    def root(self, position: int) -> Positions:
        """Position of the root table whose offset is stored at ``position``, shape [1]."""
        return self.follow(np.array([position], dtype=np.int64))

    def follow(self, positions: Positions) -> Positions:
        """Targets of the offsets stored at ``positions``; absent stays absent."""
        targets = np.full(positions.shape, ABSENT, dtype=np.int64)
        there = positions >= 0
        targets[there] = positions[there] + self.read(positions[there], "<u4").astype(np.int64)
        return targets

    def field(self, tables: Positions, slot: int) -> Positions:
        """Positions of field number ``slot`` of each table; absent fields and tables give -1."""
        found = np.full(tables.shape, ABSENT, dtype=np.int64)
        there = np.flatnonzero(tables >= 0)
        present = tables[there]
        vtables = present - self.read(present, "<i4")
        entry = _VTABLE_HEAD + 2 * slot
        long_enough = self.read(vtables, "<u2").astype(np.int64) >= entry + 2
        offsets = np.zeros(present.shape, dtype=np.int64)
        offsets[long_enough] = self.read(vtables[long_enough] + entry, "<u2")
        stored = offsets > 0
        found[there[stored]] = present[stored] + offsets[stored]
        return found

    def scalar(self, tables: Positions, slot: int, dtype: str, default: int) -> npt.NDArray[Any]:
        """Values of a scalar field, ``default`` where it is not stored, shape [n]."""
        where = self.field(tables, slot)
        values = np.full(tables.shape, default, dtype=dtype)
        there = where >= 0
        values[there] = self.read(where[there], dtype)
        return values

    def child(self, tables: Positions, slot: int) -> Positions:
        """Positions of the table, vector or string that field ``slot`` refers to."""
        return self.follow(self.field(tables, slot))

    def vector(self, position: int, dtype: str) -> npt.NDArray[Any]:
        """The scalars of one vector; none when ``position`` is absent."""
        if position < 0:
            return np.empty(0, dtype=dtype)
        start = position + _OFFSET_BYTES
        count = int(self.read(np.array([position], dtype=np.int64), "<u4")[0])
        width = np.dtype(dtype).itemsize
        if count * width > len(self._data) - start:
            raise DamagedBufferError(f"a list of {count} entries does not fit into the file")
        return np.frombuffer(self._data, dtype=dtype, count=count, offset=start)

    def tables(self, position: int) -> Positions:
        """Positions of the tables of one vector of tables."""
        offsets = self.vector(position, "<u4").astype(np.int64)
        places = position + _OFFSET_BYTES * (1 + np.arange(offsets.size, dtype=np.int64))
        return places + offsets

    def text(self, position: int) -> str:
        """One string; empty when absent. Bytes that are not UTF-8 are replaced."""
        return self.vector(position, "u1").tobytes().decode("utf-8", "replace")

    def texts(self, positions: Positions) -> tuple[list[str], npt.NDArray[np.int64]]:
        """Distinct strings at ``positions`` and, for each position, its index among them.

        Tables of one kind mostly repeat a few strings: each place is decoded once.
        """
        places, inverse = np.unique(positions, return_inverse=True)
        decoded = [self.text(int(place)) for place in places]
        distinct = list(dict.fromkeys(decoded))
        number = {text: index for index, text in enumerate(distinct)}
        lookup = np.array([number[text] for text in decoded], dtype=np.int64)
        return distinct, lookup[inverse] if lookup.size else np.empty(0, dtype=np.int64)
