"""The demo model: a small MobileNetV2 that reads handwritten digits.

Trained here, in about half a minute on two cores, because a figure from untrained weights would
say nothing; the same seed gives the same weights on the same machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..dataset.digits import NAMES, PREPROCESSING, Digits, fingerprint, split
from ..dataset.locks import temporary
from ..errors import ModelError
from .bundle import ModelBundle, numbered, state_sha256
from .contract import Source
from .quiet import quiet_torch
from .versions import installed

if TYPE_CHECKING:
    import torch

Say = Callable[[str], None]

REQUIRED_ACCURACY = 0.95


@dataclass(frozen=True)
class Training:
    """All that decides the weights, apart from data and versions."""

    seed: int = 0
    epochs: int = 10
    batch: int = 32
    peak_rate: float = 0.005
    weight_decay: float = 0.02
    label_smoothing: float = 0.05
    width: float = 0.35
    rotation: float = 0.2
    scale: float = 0.12
    shift: float = 0.15
    threads: int = 2
    """Fixed, since the order of sums depends on it."""


def bundle(
    cache: Path, training: Training = Training(), say: Say = lambda text: None
) -> ModelBundle:
    """The trained demo model; trained once, then read from ``cache``.

    Raises:
        ModelError: the accuracy on the held-out pictures is below 95 %.
    """
    quiet_torch()
    import torch

    train, test = split()
    recipe = {"training": asdict(training), "data": fingerprint(train), "versions": installed()}
    key = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16]
    file = cache / f"digits-{key}.pth"
    model = _network(training)
    if file.is_file():
        model.load_state_dict(torch.load(file, weights_only=True, map_location="cpu"))
    else:
        _train(model, train, training, say)
        accuracy = _accuracy(model, test)
        say(f"digits: {accuracy:.1%} of {len(test.digits)} held-out pictures are right")
        if accuracy < REQUIRED_ACCURACY:
            raise ModelError(
                f"the demo model reads {accuracy:.1%} of the held-out digits, "
                f"{REQUIRED_ACCURACY:.0%} expected",
                hint="train with another seed.",
            )
        cache.mkdir(parents=True, exist_ok=True)
        fresh = temporary(file)
        torch.save(model.state_dict(), fresh)
        fresh.replace(file)
    model.eval()
    source = Source("trained", f"digits, seed {training.seed}", state_sha256(model))
    return ModelBundle(model, PREPROCESSING, numbered(list(NAMES)), source)


def _network(training: Training) -> torch.nn.Module:
    import torch
    from torchvision.models import MobileNetV2

    torch.manual_seed(training.seed)
    model: torch.nn.Module = MobileNetV2(
        num_classes=len(NAMES), width_mult=training.width, dropout=0.1
    )
    return model


def _tensors(part: Digits) -> torch.Tensor:
    """float32 [N, 3, 64, 64], by the very preprocessing of the dataset."""
    import numpy as np
    import torch
    from PIL import Image

    from ..dataset.preprocess import normalise, pixels_of

    pixels = [pixels_of(Image.fromarray(p).convert("RGB"), PREPROCESSING) for p in part.pictures]
    return torch.from_numpy(normalise(np.stack(pixels), PREPROCESSING))


def _train(model: torch.nn.Module, part: Digits, training: Training, say: Say) -> None:
    import torch
    from torch.nn.functional import cross_entropy

    inputs, targets = _tensors(part), torch.from_numpy(part.digits)
    source = torch.Generator().manual_seed(training.seed)
    steps = len(inputs) // training.batch
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=training.peak_rate, weight_decay=training.weight_decay
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, training.peak_rate, total_steps=training.epochs * steps, pct_start=0.25
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(training.threads)
    try:
        model.train()
        for epoch in range(training.epochs):
            order = torch.randperm(len(inputs), generator=source)
            total = 0.0
            for step in range(steps):
                chosen = order[step * training.batch : (step + 1) * training.batch]
                scores = model(_distorted(inputs[chosen], training, source))
                loss = cross_entropy(
                    scores, targets[chosen], label_smoothing=training.label_smoothing
                )
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                schedule.step()
                total += loss.item()
            say(f"digits: epoch {epoch + 1} of {training.epochs}, loss {total / steps:.3f}")
    finally:
        torch.set_num_threads(threads)


def _distorted(batch: torch.Tensor, training: Training, source: torch.Generator) -> torch.Tensor:
    """Turn, scale and shift each picture a little; repeated borders fill the gaps."""
    import torch
    from torch.nn.functional import affine_grid, grid_sample

    amount = torch.rand(len(batch), 4, generator=source) * 2 - 1
    angle = amount[:, 0] * training.rotation
    scale = 1 + amount[:, 1] * training.scale
    shift_x, shift_y = amount[:, 2] * training.shift, amount[:, 3] * training.shift
    cosine, sine = torch.cos(angle) * scale, torch.sin(angle) * scale
    maps = torch.stack(
        [torch.stack([cosine, -sine, shift_x], 1), torch.stack([sine, cosine, shift_y], 1)], 1
    )
    grid = affine_grid(maps, list(batch.shape), align_corners=False)
    return grid_sample(batch, grid, padding_mode="border", align_corners=False)


def _accuracy(model: torch.nn.Module, part: Digits) -> float:
    import torch

    model.eval()
    with torch.no_grad():
        scores = torch.cat([model(batch) for batch in _tensors(part).split(200)])  # type: ignore[no-untyped-call]
    return float((scores.argmax(1) == torch.from_numpy(part.digits)).float().mean())
