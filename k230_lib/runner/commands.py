"""``k230 runner …``: build a runner, check one before it is deployed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .build import BuildRequest, BuiltRunner, build_runner, needs_build
from .prebuilt import least_release
from .preflight import check_runner_file
from .targets import TARGETS

app = typer.Typer(help="Build and check the runner.", no_args_is_help=True)

_SOURCE = Path(__file__).resolve().parents[2] / "kernels"

VariantOption = Annotated[str, typer.Option(help="Name in kernels/variants.yml.")]
TargetOption = Annotated[str, typer.Option(help=f"One of {', '.join(TARGETS)}.")]
SourceOption = Annotated[Path, typer.Option(help="The folder kernels/.")]
OutputOption = Annotated[Path, typer.Option(help="Folder of all runners.")]
PrefixOption = Annotated[
    Path | None, typer.Option(help="ExecuTorch installed for the target; default: the pip package.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command()
def build(
    *,
    variant: VariantOption = "portable",
    target: TargetOption = "host",
    source: SourceOption = _SOURCE,
    output: OutputOption = Path("artifacts/runners"),
    prefix: PrefixOption = None,
    tracer: Annotated[bool, typer.Option(help="With ExecuTorch's event tracer.")] = True,
    define: Annotated[
        list[str] | None, typer.Option(help="Further CMake entry, KEY=VALUE.")
    ] = None,
    variants: Annotated[
        Path | None, typer.Option(help="File of variants; default: variants.yml in the source.")
    ] = None,
    model: Annotated[
        list[Path] | None, typer.Option(help="model.json: link only the operators of these models.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only tell whether a build is needed.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Build a runner, unless it is up to date."""
    request = BuildRequest(
        variant=variant,
        target=target,
        source=source,
        output=output,
        tracer=tracer,
        prefix=prefix,
        defines=tuple(define or ()),
        variants=variants,
        models=tuple(model or ()),
    )
    if check and needs_build(request):
        document: dict[str, Any] = {"changed": True}
        text = "a build is needed"
    else:
        document = _built_document(build_runner(request, _to_stderr))
        text = document["path"]
    typer.echo(json.dumps(document, sort_keys=True) if as_json else text)


@app.command("check")
def check_file(
    *,
    runner: Annotated[Path, typer.Argument(help="The runner's file.")],
    target: TargetOption = "host",
    variant: Annotated[str | None, typer.Option(help="Demand this variant, or 'prebuilt'.")] = None,
    vector: Annotated[bool | None, typer.Option(help="Demand V in the ISA.")] = None,
    model: Annotated[Path | None, typer.Option(help="model.json of what will run.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell whether a board can load a runner, and whether a model can run on it."""
    facts = check_runner_file(runner, target, variant=variant, vector=vector, model=model)
    document = {
        "machine": facts.elf.machine,
        "static": facts.elf.static,
        "entry": facts.elf.entry,
        "arch": facts.elf.arch,
        "bytes": facts.elf.size,
        "load_pages": facts.pages,
        "load_ms": {"value": facts.load_ms, "origin": "modelled"},
        "manifest": facts.manifest.document if facts.manifest else None,
        "flags": sorted(facts.flags),
        "executor_runner": least_release(facts.flags),
    }
    if as_json:
        typer.echo(json.dumps(document, sort_keys=True))
    else:
        kind = (
            facts.manifest.variant
            if facts.manifest
            else f"executor_runner of {least_release(facts.flags)} or later"
            if least_release(facts.flags)
            else "unknown program"
        )
        typer.echo(
            f"{runner}: {kind}, {facts.elf.machine}, {facts.elf.size} bytes, "
            f"about {facts.load_ms / 1000:.1f} s to load (modelled)"
        )


def _built_document(runner: BuiltRunner) -> dict[str, Any]:
    return {
        "changed": runner.changed,
        "built": runner.built,
        "path": str(runner.path.resolve()),
        "manifest_path": str(runner.manifest_path.resolve()),
        "manifest": runner.document,
    }


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
