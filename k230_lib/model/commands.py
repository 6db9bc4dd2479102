"""``k230 model``: export models, run them on the host."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..dataset.ticker import Ticker
from ..terminal import AsJson, Check, tell
from .zoo import ModelRequest

app = typer.Typer(no_args_is_help=True)


@app.command()
def export(
    model: Annotated[str, typer.Argument(help="digits, a torchvision model, or module:function.")],
    *,
    weights: Annotated[
        str | None, typer.Option(help="A .pth file, a weights enum name, or random:SEED.")
    ] = None,
    transforms: Annotated[
        str | None,
        typer.Option(help="Weights enum name whose preprocessing a .pth file was trained for."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of all models.")] = Path("artifacts/models"),
    name: Annotated[str | None, typer.Option(help="Name of the model's folder.")] = None,
    fold_batch_norm: Annotated[
        bool, typer.Option(help="Fold batch norm into convolutions.")
    ] = True,
    constants: Annotated[
        bool, typer.Option(help="Compute what depends on weights only at export.")
    ] = True,
    fuse_clamp: Annotated[
        bool, typer.Option(help="Fuse convolution and clamp (needs a runner with our kernels).")
    ] = False,
    check: Check = False,
    as_json: AsJson = False,
) -> None:
    """Export a model to ExecuTorch: model.pte, model.etrecord and model.json."""
    from .export import Passes, plan, unchanged
    from .export import export as run

    request = ModelRequest(model, weights, transforms)
    todo = plan(request, out, name, Passes(fold_batch_norm, constants, fuse_clamp))
    if check:
        changed = unchanged(todo) is None
        answer = {"changed": changed, "folder": str(todo.folder), "name": todo.name}
        text = f"{todo.folder}: {'would be exported' if changed else 'up to date'}"
    else:
        done = run(todo, tell)
        contract = done.contract
        answer = {
            "changed": done.changed,
            "folder": str(done.folder),
            "name": contract.name,
            "pte": asdict(contract.pte),
            "operators": list(contract.operators),
            "planned_buffers": list(contract.planned_buffers),
            "seconds": dict(done.seconds),
        }
        state = "exported" if done.changed else "up to date"
        text = f"{done.folder}: {state}, {contract.pte.bytes} bytes"
    print(json.dumps(answer) if as_json else text)


@app.command()
def host(
    model: Annotated[Path, typer.Argument(help="Folder with model.json.")],
    dataset: Annotated[Path, typer.Argument(help="Folder with dataset.json.")],
    *,
    cache: Annotated[Path, typer.Option(help="Where scores are kept.")] = Path("artifacts/host"),
    first: Annotated[int | None, typer.Option(min=1, help="Only so many samples.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the logits to this NPZ file.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only say how many samples would be computed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a dataset on this machine's ExecuTorch: the reference for the boards."""
    from ..dataset.manifest import DATASET_FILE, read_manifest
    from ..evaluation.accuracy import score
    from .contract import FILE_NAME
    from .host import missing_samples, run_dataset, save_logits

    file = str(save.resolve()) if save else None
    if check and not ((model / FILE_NAME).exists() and (dataset / DATASET_FILE).exists()):
        # in check mode the steps before this one did nothing
        print(json.dumps({"changed": True, "file": file}) if as_json else "host: would be computed")
        return
    samples = list(read_manifest(dataset))[:first]
    indices = [sample.index for sample in samples]
    if check:
        missing = len(missing_samples(model, dataset, cache, indices))
        answer = {"changed": missing > 0, "computed": missing, "file": file}
        print(json.dumps(answer) if as_json else f"host: {missing} samples would be computed")
        return
    results = run_dataset(model, dataset, cache, indices, progress=Ticker("host"))
    figures = score(results.logits, [sample.label for sample in samples])
    written = save is not None and save_logits(results, save)
    answer = {
        "changed": results.computed > 0 or written,
        "computed": results.computed,
        "file": file,
        **figures.to_json(),
    }
    text = f"host: {figures} ({results.computed} computed)"
    print(json.dumps(answer) if as_json else text)
