"""Reading ETRecord files: from an instruction of the program back to the model's source.

An ETRecord is a zip file whose graph is JSON; reading that needs neither torch nor the weights
that it also holds. Files of the current release (``edge_dialect_exported_program/<method>``) and
of releases before it (one entry without method) are understood.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from .graph import GraphNode, graph_nodes
from .sources import read_file

IDENTIFIER = "ETRECORD_V0"
GRAPH = "edge_dialect_exported_program"
FORWARD = "forward"
REGENERATE = "export the model again, so that .pte and ETRecord are written together."
_SIDE_ENTRIES = ("_state_dict", "_constants", "_example_inputs")


@dataclass(frozen=True)
class EtRecord:
    """What an ETRecord knows of one method.

    ``nodes`` maps the index of an instruction to the graph nodes that it came from, in graph
    order; several when one source line was split.
    """

    path: Path
    method: str
    nodes: Mapping[int, tuple[GraphNode, ...]]

    @property
    def operators(self) -> frozenset[str]:
        """Names of all operators of the graph, e.g. ``aten.convolution.default``."""
        return frozenset(node.operator for nodes in self.nodes.values() for node in nodes)


def read_etrecord(path: Path, method: str = FORWARD) -> EtRecord:
    """Read and check an ETRecord file.

    Raises:
        InputError: the file is missing, empty, truncated, of another kind or release, or lacks the
            operator map or the graph; the message says which.
    """
    data = read_file(path, "ETRecord", hint=REGENERATE)
    if data[4:8] == b"ET12" or data[8:12] == b"ED00":
        kind = "a .pte model" if data[4:6] == b"ET" else "an ETDump"
        raise InputError(f"{path}: not an ETRecord but {kind}.", hint=REGENERATE)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _read(path, archive, method)
    except (zipfile.BadZipFile, EOFError, zlib.error, NotImplementedError) as error:
        cut = data[:4] == b"PK\x03\x04"
        what = "the ETRecord is truncated or damaged" if cut else "not an ETRecord"
        raise InputError(f"{path}: {what}: {error}.", hint=REGENERATE) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: the ETRecord's graph is not understood ({type(error).__name__}: {error}).",
            hint=REGENERATE,
        ) from error


def _read(path: Path, archive: zipfile.ZipFile, method: str) -> EtRecord:
    entries = archive.namelist()
    if IDENTIFIER not in entries:
        other = [name for name in entries if name.startswith("ETRECORD_V")]
        if other:
            raise InputError(
                f"{path}: ETRecord of version {other[0].removeprefix('ETRECORD_')}, expected V0: "
                "it was written by another release of ExecuTorch.",
                hint=REGENERATE,
            )
        raise InputError(f"{path}: a zip file, but not an ETRecord.", hint=REGENERATE)
    if "debug_handle_map" not in entries:
        raise InputError(f"{path}: the ETRecord has no operator map.", hint=REGENERATE)
    handle_map = json.loads(archive.read("debug_handle_map"))
    if method not in handle_map:
        known = ", ".join(sorted(handle_map)) or "none"
        raise InputError(f"{path}: no method {method!r} in the ETRecord; it has: {known}.")
    graph = json.loads(archive.read(_graph_entry(path, entries, method)))
    by_handle: dict[int, list[GraphNode]] = {}
    for node in graph_nodes(graph["graph_module"]["graph"]):
        by_handle.setdefault(node.handle, []).append(node)
    nodes = {
        int(instruction): tuple(
            node for handle in _handles(handles) for node in by_handle.get(handle, ())
        )
        for instruction, handles in handle_map[method].items()
    }
    return EtRecord(path=path, method=method, nodes=nodes)


def _graph_entry(path: Path, entries: list[str], method: str) -> str:
    """Name of the zip entry with the graph of ``method``."""
    for name in (f"{GRAPH}/{method}", GRAPH):
        if name in entries:
            return name
    graphs = [
        name
        for name in entries
        if name.startswith(f"{GRAPH}/") and not name.endswith(_SIDE_ENTRIES)
    ]
    if len(graphs) == 1:
        return graphs[0]
    raise InputError(
        f"{path}: the ETRecord has no graph of method {method!r} (entry {GRAPH}): it was written "
        "by another release of ExecuTorch.",
        hint=REGENERATE,
    )


def _handles(value: Any) -> tuple[int, ...]:
    return tuple(int(handle) for handle in value) if isinstance(value, list) else (int(value),)
