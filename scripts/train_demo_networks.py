"""Train the four networks of `radii demo` and write them to src/radii/demo/.

    python scripts/train_demo_networks.py [--out DIR]

A dense and a convolutional classifier of the embedded 8x8 digits, each trained on the images as
they are ("standard") and on PGD examples ("adversarial"). Seeded and single-threaded: the same
packages on the same processor give the same files. Takes about a minute and prints what it measured
on the test split, which training never sees.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from radii import datasets

EPS = 0.1
"""The Linf radius of the training examples, in pixels between 0 and 1."""

EPOCHS = 80
BATCH = 64
PEAK_RATE = 0.02
WEIGHT_DECAY = 0.1
LABEL_SMOOTHING = 0.1
TRAIN_STEPS = 7
TEST_STEPS = 40
SEED = 1

ONNX_OPSET = 13
ONNX_IR = 8
"""Old enough for every ONNX reader of the last years."""


def mlp() -> nn.Sequential:
    """64-24-16-10."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(64, 24),
        nn.ReLU(),
        nn.Linear(24, 16),
        nn.ReLU(),
        nn.Linear(16, 10),
    )


def cnn() -> nn.Sequential:
    """Six 3x3 filters with stride 2, then one dense layer."""
    return nn.Sequential(
        nn.Conv2d(1, 6, kernel_size=3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(6 * 4 * 4, 10),
    )


ARCHITECTURES = {"mlp": mlp, "cnn": cnn}


def attacked(network: nn.Module, images: Tensor, labels: Tensor, eps: float, steps: int) -> Tensor:
    """PGD examples: signed gradient steps from a random start, kept in the ball and in [0, 1]."""
    low, high = (images - eps).clamp(min=0), (images + eps).clamp(max=1)
    points = low + (high - low) * torch.rand_like(images)
    for _ in range(steps):
        points.requires_grad_()
        loss = cross_entropy(network(points), labels, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, points)
        points = points.detach() + 2.5 * eps / steps * gradient.sign()
        points = points.clamp(low, high)
    return points


def train(network: nn.Module, images: Tensor, labels: Tensor, eps: float) -> None:
    """Fit to the images (eps 0), or to PGD examples whose eps grows over the first half."""
    batches = -(-len(images) // BATCH)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, PEAK_RATE, total_steps=EPOCHS * batches
    )
    for epoch in range(EPOCHS):
        eps_now = eps * min(1.0, 2 * (epoch + 1) / EPOCHS)
        for batch in torch.split(torch.randperm(len(images)), BATCH):
            seen, wanted = images[batch], labels[batch]
            if eps:
                seen = attacked(network, seen, wanted, eps_now, TRAIN_STEPS)
            loss = cross_entropy(network(seen), wanted, label_smoothing=LABEL_SMOOTHING)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            schedule.step()


def accuracy(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    with torch.no_grad():
        return float((network(images).argmax(dim=1) == labels).double().mean())


def onnx_operator(layer: nn.Module) -> tuple[str, dict[str, Any]]:
    """The ONNX operator of a layer, with its attributes."""
    match layer:
        case nn.Flatten():
            return "Flatten", {"axis": 1}
        case nn.ReLU():
            return "Relu", {}
        case nn.Linear():
            return "Gemm", {"transB": 1}
        case nn.Conv2d():
            size, strides, pads = layer.kernel_size, layer.stride, (*layer.padding, *layer.padding)
            return "Conv", {"kernel_shape": size, "strides": strides, "pads": pads}
    raise NotImplementedError(f"no ONNX operator for {layer}")


def to_onnx(network: nn.Sequential, name: str) -> onnx.ModelProto:
    """The network as an ONNX model with a free batch axis."""
    nodes, parameters, value = [], [], "image"
    for place, layer in enumerate(network):
        operator, attributes = onnx_operator(layer)
        inputs = [value]
        for role, tensor in layer.named_parameters():  # the weight, then the bias, as in ONNX
            inputs.append(f"{role}_{place}")
            array = tensor.detach().numpy().astype(np.float32)
            parameters.append(numpy_helper.from_array(array, inputs[-1]))
        value = "scores" if place == len(network) - 1 else f"value_{place}"
        nodes.append(helper.make_node(operator, inputs, [value], name=value, **attributes))
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10])],
        parameters,
    )
    opset = [helper.make_opsetid("", ONNX_OPSET)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=ONNX_IR, producer_name="radii")
    onnx.checker.check_model(model, full_check=True)
    return model


def tensors_of(split: str) -> tuple[Tensor, Tensor]:
    digits = datasets.load("digits", split)
    return torch.from_numpy(digits.images.copy()), torch.from_numpy(digits.labels.copy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(__file__).parents[1] / "src" / "radii" / "demo"
    parser.add_argument("--out", type=Path, default=default, metavar="DIR")
    directory = parser.parse_args().out
    directory.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    train_images, train_labels = tensors_of("train")
    test_images, test_labels = tensors_of("test")
    print(f"{'network':<20} {'accuracy':>8} {'under PGD at ' + str(EPS):>19} {'bytes':>7}")
    for architecture, build in ARCHITECTURES.items():
        for training, eps in (("standard", 0.0), ("adversarial", EPS)):
            torch.manual_seed(SEED)
            network = build()
            train(network, train_images, train_labels, eps)
            examples = attacked(network, test_images, test_labels, EPS, TEST_STEPS)
            clean = accuracy(network, test_images, test_labels)
            robust = accuracy(network, examples, test_labels)
            name = f"{architecture}-{training}"
            size = (directory / f"{name}.onnx").write_bytes(
                to_onnx(network, name).SerializeToString()
            )
            print(f"{name:<20} {clean:>8.3f} {robust:>19.3f} {size:>7}", flush=True)


if __name__ == "__main__":
    main()
