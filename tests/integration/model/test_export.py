from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from k230_lib.errors import ModelError
from k230_lib.model.contract import load
from k230_lib.model.export import Exported, Passes, export, plan, unchanged
from k230_lib.model.host import HostProgram
from k230_lib.model.zoo import ModelRequest

MODEL = """
import torch
from k230_lib.model.bundle import ModelBundle, numbered, state_sha256
from k230_lib.model.contract import Preprocessing, Source


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, 2, 1, bias=False),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU6(),
        )
        # named members instead of a sequence, as in ResNet
        self.conv = torch.nn.Conv2d(8, 8, 3, 1, 1, groups=8)
        self.norm = torch.nn.BatchNorm2d(8)
        # one convolution for two purposes: must not be folded
        self.shared = torch.nn.Conv2d(8, 8, 1)
        self.shared_norm = torch.nn.BatchNorm2d(8)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        x = self.body(x)
        x = torch.relu(self.norm(self.conv(x))) + x
        y = self.shared(x)
        x = self.shared_norm(y) + y
        return self.head(x.mean((2, 3)))


def make(weights="0"):
    torch.manual_seed(int(weights))
    net = Net()
    for part in net.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(part.running_mean, -1, 1)
            torch.nn.init.uniform_(part.running_var, 0.5, 2)
            torch.nn.init.uniform_(part.weight, 0.5, 2)
    source = Source("user", weights, state_sha256(net))
    return ModelBundle(net, Preprocessing(16, 16), numbered(["a", "b", "c", "d"]), source)


def wrong_type():
    return Net()


def wrong_size():
    bundle = make()
    return ModelBundle(bundle.module, bundle.preprocessing, bundle.classes[:3], bundle.source)


class Branch(Net):
    def forward(self, x):
        return super().forward(x) if x.sum() > 0 else super().forward(-x)


def branch():
    bundle = make()
    return ModelBundle(Branch(), bundle.preprocessing, bundle.classes, bundle.source)
"""

FUSED = "k230::conv2d_clamp.out"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "k230_user_model.py").write_text(MODEL)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "k230_user_model", raising=False)
    return "k230_user_model"


def _export(module: str, out: Path, passes: Passes | None = None) -> Exported:
    return export(plan(ModelRequest(f"{module}:make"), out, "user", passes or Passes()))


def _eager(module: str, example: torch.Tensor) -> torch.Tensor:
    net = sys.modules[module].make().module.eval()
    with torch.no_grad():
        return net(example)


def test_a_users_model_is_exported_verified_and_described(module: str, tmp_path: Path) -> None:
    done = _export(module, tmp_path)
    assert done.changed
    contract = load(done.folder, verify_files=True)
    assert contract == done.contract
    assert contract.input.shape == (1, 3, 16, 16)
    assert [entry.name for entry in contract.classes] == ["a", "b", "c", "d"]
    assert "aten::convolution.out" in contract.operators
    assert list(contract.operators) == sorted(contract.operators)
    assert sum(contract.planned_buffers) > 0
    assert contract.versions["executorch"]
    example = torch.randn(1, 3, 16, 16)
    found = HostProgram(done.folder / "model.pte").run(example.numpy())
    np.testing.assert_allclose(found, _eager(module, example)[0], rtol=1e-4, atol=1e-5)


def test_the_same_inputs_are_exported_once(module: str, tmp_path: Path) -> None:
    first = _export(module, tmp_path)
    stamp = (first.folder / "model.pte").stat().st_mtime_ns
    again = _export(module, tmp_path)
    assert not again.changed
    assert again.contract == first.contract
    assert (first.folder / "model.pte").stat().st_mtime_ns == stamp
    assert _export(module, tmp_path, Passes(constants=False)).changed


def test_a_damaged_program_is_exported_again(module: str, tmp_path: Path) -> None:
    first = _export(module, tmp_path)
    whole = (first.folder / "model.pte").read_bytes()
    (first.folder / "model.pte").write_bytes(whole[:-8])
    todo = plan(ModelRequest(f"{module}:make"), tmp_path, "user")
    assert unchanged(todo) is None
    assert export(todo).changed
    assert (first.folder / "model.pte").read_bytes() == whole


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("constants", [True, False])
def test_each_pass_does_its_work_and_changes_no_result(
    module: str, tmp_path: Path, fold: bool, constants: bool
) -> None:
    contract = _export(module, tmp_path, Passes(fold, constants)).contract
    norms = "aten::_native_batch_norm_legit_no_training.out" in contract.operators
    # the batch norm behind the shared convolution stays
    assert norms
    assert contract.export["passes"]["folded"] == (2 if fold else 0)
    assert ("aten::permute_copy.out" in contract.operators) == (not constants)
    assert contract.export["error_to_eager"] < 1e-5


def test_fused_clamps_are_verified_and_need_our_runner(module: str, tmp_path: Path) -> None:
    done = _export(module, tmp_path, Passes(fuse_clamp=True))
    assert FUSED in done.contract.operators
    assert "aten::hardtanh.out" not in done.contract.operators
    assert "aten::relu.out" not in done.contract.operators
    assert done.contract.export["passes"]["fused"] == 2
    assert 0 < done.contract.export["error_to_eager"] < 1e-5
    with pytest.raises(ModelError, match=r"does not load on the host runtime|k230_runner only"):
        HostProgram(done.folder / "model.pte")


def test_the_etrecord_still_names_modules(module: str, tmp_path: Path) -> None:
    from executorch.devtools.etrecord import parse_etrecord

    for passes in (Passes(), Passes(fuse_clamp=True)):
        done = _export(module, tmp_path, passes)
        record = parse_etrecord(str(done.folder / "model.etrecord"))
        graph = record.edge_dialect_program.graph
        stacks = json.dumps(
            [
                [entry[0] for entry in node.meta["nn_module_stack"].values()]
                for node in graph.nodes
                if node.op == "call_function" and "nn_module_stack" in node.meta
            ]
        )
        assert "body.0" in stacks
        assert "conv" in stacks
        assert "head" in stacks


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("wrong_type", "ModelBundle expected, found Net"),
        ("wrong_size", r"scores \[1, 3\] expected"),
        ("branch", "cannot be exported by torch.export"),
    ],
)
def test_what_cannot_be_exported_is_told_in_one_line(
    module: str, tmp_path: Path, function: str, words: str
) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        export(plan(ModelRequest(f"{module}:{function}"), tmp_path, "user"))
    assert "\n" not in str(caught.value)
    assert {path.name for path in tmp_path.glob("*user*")} <= {"k230_user_model.py", ".user.lock"}


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    weights = tmp_path / "w.pth"
    torch.save({"nothing": torch.zeros(1)}, weights)
    with pytest.raises(ModelError, match="does not fit mobilenet_v2"):
        export(plan(ModelRequest("mobilenet_v2", str(weights)), tmp_path))


def test_weights_that_could_run_code_are_refused(tmp_path: Path) -> None:
    weights = tmp_path / "w.pth"
    torch.save(torch.nn.Linear(1, 1), weights)
    with pytest.raises(ModelError, match="not a state dict that loads with weights_only"):
        export(plan(ModelRequest("mobilenet_v2", str(weights)), tmp_path))


@pytest.mark.parametrize("content", [b"", b"not a program", b"\0" * 4096])
def test_what_is_no_program_is_told_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.pte").write_bytes(content)
    with pytest.raises(ModelError, match=r"model\.pte does not load") as caught:
        HostProgram(tmp_path / "model.pte")
    assert "\n" not in str(caught.value)
