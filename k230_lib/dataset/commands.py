"""``k230 dataset``: from labelled images to packed tensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, cast

import typer

from ..errors import DatasetError, InputError
from ..model.contract import FILE_NAME, load
from ..terminal import AsJson, Check, tell
from .layouts import Layout, Request
from .preprocess import Dtype
from .ticker import Ticker

app = typer.Typer(no_args_is_help=True)

_LAYOUTS = ("auto", "folders", "kaggle", "flat", "list", "numeric")
_DTYPES = ("uint8", "float32")


def _one_of(value: str, allowed: tuple[str, ...], what: str) -> str:
    if value not in allowed:
        raise InputError(f"{what} {value!r} is unknown", hint=f"use one of {', '.join(allowed)}.")
    return value


@app.command()
def prepare(
    images: Annotated[Path | None, typer.Argument(help="Folder of the images.")] = None,
    *,
    model: Annotated[Path, typer.Option(help="Folder with model.json: the input contract.")],
    name: Annotated[str, typer.Option(help="Name of the dataset's folder.")],
    out: Annotated[Path, typer.Option(help="Folder of all datasets.")] = Path("artifacts/datasets"),
    with_digits: Annotated[
        bool, typer.Option("--digits", help="Use the handwritten digits, see k230 dataset digits.")
    ] = False,
    mapping: Annotated[
        Path | None, typer.Option(help="Synset mapping: line number = class index.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="LOC_val_solution.csv, val_map.txt or a list.")
    ] = None,
    layout: Annotated[str, typer.Option(help=f"One of {', '.join(_LAYOUTS)}.")] = "auto",
    label_base: Annotated[
        int | None, typer.Option(help="Number of the first class, 0 or 1.")
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="uint8 (normalised on the board) or float32.")
    ] = "uint8",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only so many images, stratified.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Which images a limit chooses.")] = 0,
    shard_size: Annotated[int, typer.Option(min=1, help="Samples in a shard.")] = 64,
    max_skipped: Annotated[
        int, typer.Option(min=0, help="Unusable files that are put up with.")
    ] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as cores if unset.")
    ] = None,
    check: Check = False,
    as_json: AsJson = False,
) -> None:
    """Decode, resize, crop and pack labelled images for a model."""
    from . import build

    folder = _images(images, out, with_digits, check)
    if check and not (folder.is_dir() and (model / FILE_NAME).exists()):
        # in check mode the steps before this one did nothing
        answer = {"changed": True, "folder": str(out / name), "images": 0}
        print(json.dumps(answer) if as_json else f"{out / name}: would be prepared")
        return
    request = Request(
        folder, cast(Layout, _one_of(layout, _LAYOUTS, "layout")), mapping, labels, label_base
    )
    settings = build.Settings(
        name=name,
        out=out,
        dtype=cast(Dtype, _one_of(dtype, _DTYPES, "dtype")),
        limit=limit,
        seed=seed,
        shard_size=shard_size,
        max_skipped=max_skipped,
        workers=workers,
    )
    todo = build.plan(request, load(model), settings)
    if check:
        changed = build.unchanged(todo) is None
        answer = {"changed": changed, "folder": str(todo.folder), "images": len(todo.entries)}
        text = f"{todo.folder}: {'would be prepared' if changed else 'up to date'}"
    else:
        done = build.prepare(todo, Ticker("prepare"), tell)
        counts = done.dataset.counts
        answer = {
            "changed": done.changed,
            "folder": str(done.folder),
            "shards": len(done.dataset.shards),
            "reused_shards": done.reused,
            "odd": dict(done.dataset.odd),
            "labels": dict(done.dataset.labels),
            **counts,
        }
        state = "prepared" if done.changed else "up to date"
        text = (
            f"{done.folder}: {state}, {counts['images']} images in "
            f"{len(done.dataset.shards)} shards, {counts['skipped']} skipped"
        )
    print(json.dumps(answer) if as_json else text)


def _images(images: Path | None, out: Path, with_digits: bool, check: bool) -> Path:
    """The image folder; the digits are written first where they are wanted."""
    if with_digits == (images is not None):
        raise InputError(
            "an image folder or --digits expected, found both or none", hint="give one of them."
        )
    if images is not None:
        if not images.is_dir():
            raise DatasetError(
                f"image folder {images} does not exist", hint="check the path of the images."
            )
        return images
    folder = out.parent / "images" / "digits"
    if not check:
        from .digits import write_test_images

        write_test_images(folder)
    return folder


@app.command()
def digits(
    *,
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path(
        "artifacts/images/digits"
    ),
    as_json: AsJson = False,
) -> None:
    """Write the held-out handwritten digits as image files in class folders."""
    from .digits import write_test_images

    changed = write_test_images(out)
    answer = {"changed": changed, "folder": str(out)}
    print(json.dumps(answer) if as_json else f"{out}: {'written' if changed else 'up to date'}")
