"""Which function serves which operator: a registration of our own, by ExecuTorch's generator.

ExecuTorch's table of portable kernels is merged with the variant's, reduced to what a model needs
if asked for, and given to the generator of the pip package. What it wrote is read back, so that a
binding is proved and not assumed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from ..errors import InputError, RunnerError
from .variants import OwnKernel

GENERATED_SOURCE: Final = "RegisterCodegenUnboxedKernelsEverything.cpp"
_NAMESPACE: Final = "aten::"
_FUNC_LINE: Final = re.compile(r"^- func: ([\w.]+)\(", re.MULTILINE)
_ENTRY: Final = re.compile(r'Kernel\(\s*"([\w:.]+)",(?:\s*"([^"]*)",)?')
_CALL: Final = re.compile(r"([\w:]+::native::\w+)\(context")


@dataclass(frozen=True)
class Sources:
    """Where the generator and its tables are.

    Attributes:
        portable: ExecuTorch's ``kernels/portable/functions.yaml``.
        schemas: PyTorch's ``native_functions.yaml``; names every operator that there is.
        tags: PyTorch's ``tags.yaml``.
    """

    portable: Path
    schemas: Path
    tags: Path


def find_sources(executorch: Path) -> Sources:
    """The tables of the pip packages.

    Args:
        executorch: folder of the pip package.

    Raises:
        RunnerError: the packages lack them.
    """
    import importlib.util

    spec = importlib.util.find_spec("torchgen")
    places = list(spec.submodule_search_locations or ()) if spec else []
    native = Path(places[0] if places else ".") / "packaged" / "ATen" / "native"
    found = Sources(
        executorch / "kernels" / "portable" / "functions.yaml",
        native / "native_functions.yaml",
        native / "tags.yaml",
    )
    for path in (found.portable, found.schemas, found.tags):
        if not path.is_file():
            raise RunnerError(
                f"no {path.name} in the pip packages of this Python.",
                hint="install torch and executorch 1.5 or later.",
            )
    return found


def full_name(entry: Mapping[str, Any]) -> str:
    """The operator of an entry of a kernel table, with its namespace."""
    name = str(entry["op"] if "op" in entry else entry["func"].partition("(")[0])
    return name if "::" in name else _NAMESPACE + name


def merge_tables(
    portable: Sequence[Mapping[str, Any]],
    own: Sequence[OwnKernel],
    known: Collection[str],
    selected: Collection[str] | None,
) -> list[dict[str, Any]]:
    """ExecuTorch's table with the variant's entries instead, reduced to a model's. Pure.

    Args:
        portable: entries of ExecuTorch's ``functions.yaml``.
        own: kernels that replace ExecuTorch's (those without keys).
        known: every operator name that exists.
        selected: operators that are needed; none means all.

    Raises:
        InputError: a kernel is for an operator that does not exist.
    """
    table = {full_name(entry): dict(entry) for entry in portable}
    for kernel in own:
        _check_known(kernel, {*table, *known})
        table[kernel.operator] = _entry(kernel)
    if selected is None:
        return list(table.values())
    return [entry for name, entry in table.items() if name in selected]


def keyed_table(own: Sequence[OwnKernel], known: Collection[str]) -> list[dict[str, Any]]:
    """Entries for the kernels that are put in front of ExecuTorch's by their keys. Pure.

    Raises:
        InputError: a kernel is for an operator that does not exist.
    """
    for kernel in own:
        _check_known(kernel, known)
    return [_entry(kernel) for kernel in own]


def with_keys(source: str, keys: Mapping[str, Sequence[str]]) -> str:
    """A generated registration with each entry once for every key of its operator. Pure."""
    starts = [match.start() for match in _ENTRY.finditer(source)]
    if not starts:
        return source
    ends = [*starts[1:], source.index("};", starts[-1])]
    entries = []
    for start, end in zip(starts, ends, strict=True):
        text = source[start:end]
        operator = _ENTRY.match(text)
        assert operator is not None
        name = operator.group(1)
        entries += [text.replace(f'"{name}",', f'"{name}",\n    "{key}",', 1) for key in keys[name]]
    return source[: starts[0]] + "".join(entries) + source[ends[-1] :]


def read_bindings(source: str) -> dict[str, str]:
    """Operator to function, as a generated registration has it. Pure."""
    starts = [(match.start(), match.group(1)) for match in _ENTRY.finditer(source)]
    ends = [*(start for start, _ in starts[1:]), len(source)]
    bindings = {}
    for (start, operator), end in zip(starts, ends, strict=True):
        call = _CALL.search(source, start, end)
        if call is not None:
            bindings[operator] = call.group(1).replace("::native::", "::")
    return bindings


def check_read_back(bindings: Mapping[str, str], own: Sequence[OwnKernel]) -> None:
    """Prove that the generated registration calls the variant's functions.

    Raises:
        RunnerError: naming the first operator that is bound to something else.
    """
    for kernel in own:
        found = bindings.get(kernel.operator)
        if found != kernel.function:
            raise RunnerError(
                f"{kernel.operator} is bound to {found or 'nothing'}, expected {kernel.function}.",
                hint="look at the variant's kernels in variants.yml.",
            )


def known_operators(sources: Sources) -> set[str]:
    """Every operator of PyTorch and of ExecuTorch's portable kernels."""
    native = _FUNC_LINE.findall(sources.schemas.read_text("utf-8"))
    return {_NAMESPACE + name for name in native} | {
        full_name(entry) for entry in load_table(sources.portable)
    }


def load_table(path: Path) -> list[dict[str, Any]]:
    """The entries of a kernel table."""
    table: list[dict[str, Any]] = yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)
    return table


def generate(
    table: Sequence[Mapping[str, Any]],
    folder: Path,
    sources: Sources,
    templates: Path,
    keys: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """Write the registration of ``table`` into ``folder`` and return its bindings.

    Raises:
        RunnerError: the generator failed, with its last line.
    """
    folder.mkdir(parents=True, exist_ok=True)
    merged = folder / "functions.yaml"
    merged.write_text(yaml.safe_dump(list(table), sort_keys=False), "utf-8")
    selection = folder / "selected_operators.yaml"
    _run("executorch.codegen.tools.gen_oplist", f"--output_path={selection}",
         f"--ops_schema_yaml_path={merged}")  # fmt: skip
    # The generator looks for templates/ below the folder it is given.
    _run(
        "executorch.codegen.gen",
        f"--source-path={templates.parent}",
        f"--install-dir={folder}",
        f"--tags-path={sources.tags}",
        f"--aten-yaml-path={sources.schemas}",
        f"--functions-yaml-path={merged}",
        f"--op-selection-yaml-path={selection}",
    )
    path = folder / GENERATED_SOURCE
    text = path.read_text("utf-8")
    if keys is not None:
        text = with_keys(text, keys)
        path.write_text(text, "utf-8")
    return read_bindings(text)


def _entry(kernel: OwnKernel) -> dict[str, Any]:
    if kernel.schema:
        what = {"func": kernel.schema}
    else:
        what = {"op": kernel.operator.removeprefix(_NAMESPACE)}
    return {**what, "kernels": [{"arg_meta": None, "kernel_name": kernel.function}]}


def _check_known(kernel: OwnKernel, known: Collection[str]) -> None:
    if not kernel.schema and kernel.operator not in known:
        raise InputError(
            f"ExecuTorch knows no operator {kernel.operator}.",
            hint="correct 'op' in variants.yml, or give the schema of a new one as 'func'.",
        )


def _run(module: str, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise RunnerError(f"{module} failed: {lines[-1] if lines else 'no output'}")
