"""Instances of the comparison with peers, and what alpha-beta-CROWN was measured to do with them.

MNIST networks are asked on the papers' grid about training images, CIFAR-10 networks about test
images. The figures for these were noted to a thousandth, and for residual networks to half of that:
so are their grids.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import published
from radii.problem import Grid


@dataclass(frozen=True, slots=True)
class Source:
    """Where a network lies, which images it is asked about, and on which grid.

    `mean` and `std` are of a normalisation that the file leaves to its user, one value a channel.
    """

    folder: str = "jair/networks"
    data: str = "mnist:train"
    grid: str = "0.001:0.4:0.002"
    mean: str = ""
    std: str = ""


MNIST = Source()
KOLTER_WONG = Source(
    "cifar10", "cifar10:test", "0.001:0.05:0.001", "0.485,0.456,0.406", "0.225,0.225,0.225"
)
RESNET_2B = Source(
    *("cifar10", "cifar10:test", "0.0005:0.05:0.0005"),
    *("0.4914,0.4822,0.4465", "0.2471,0.2435,0.2616"),
)
RESNET_4B = Source(data="cifar10:test", grid="0.0005:0.05:0.0005")
SOURCES = {
    "cifar_base_kw": KOLTER_WONG,
    "cifar_deep_kw": KOLTER_WONG,
    "resnet_2b": RESNET_2B,
    "resnet_4b_fgsm": RESNET_4B,
    "resnet_4b_pgd": RESNET_4B,
    "resnet_4b_standard": RESNET_4B,
}
"""Of networks that are not on MNIST."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One image on one network."""

    network: str
    image: int
    other_grid: str = ""
    """In place of its source's."""

    @property
    def name(self) -> str:
        return f"{self.network} {self.image}"

    @property
    def source(self) -> Source:
        source = SOURCES.get(self.network, MNIST)
        return replace(source, grid=self.other_grid) if self.other_grid else source

    @property
    def grid(self) -> Grid:
        return Grid.parse(self.source.grid)

    @property
    def file(self) -> Path:
        return published.SHARED / self.source.folder / f"{self.network}.onnx"

    @property
    def flags(self) -> tuple[object, ...]:
        """What `radii run` is told of it."""
        source = self.source
        flags: list[object] = ["--network", self.file, "--domain", "0:1", "--grid", source.grid]
        flags += ["--data", f"{source.data}[{self.image}:{self.image + 1}]"]
        if source.mean:
            flags += ["--mean", source.mean, "--std", source.std]
        return tuple(flags)


@dataclass(frozen=True, slots=True)
class Peer:
    """What a peer did with an instance: `seconds` if it proved the largest grid value below
    radii's witness, else `lower`, the largest that it proved, where that was noted."""

    seconds: float | None = None
    lower: float | None = None

    def __str__(self) -> str:
        if self.seconds is not None:
            return f"closed in {self.seconds:.3g} s"
        return "open" if self.lower is None else f"{self.lower:g}"


OPEN = Peer()

ALPHA_BETA_CROWN: dict[Subject, Peer | None] = {
    Subject("mnist-net", 50): Peer(3.0),
    Subject("mnist-net", 51): Peer(4.4),
    Subject("mnist-net", 52): Peer(1.2),
    Subject("mnist-net", 53): Peer(1.3),
    Subject("mnist-net", 54): Peer(0.8),
    Subject("mnist-net", 55): OPEN,
    Subject("mnist-net_256x2", 55): Peer(11.0),
    Subject("mnist_relu_3_100", 50): Peer(lower=0.029),
    Subject("mnist_relu_3_100", 51): Peer(lower=0.055),
    Subject("mnist_relu_3_100", 53): Peer(2.1),
    Subject("mnist_relu_9_100", 50): Peer(lower=0.019),
    Subject("mnist_relu_9_100", 51): Peer(lower=0.043),
    Subject("mnist_relu_9_100", 53): OPEN,
    Subject("mnist-net_256x6", 50): Peer(lower=0.031),
    Subject("mnist-net_256x6", 51): Peer(lower=0.047),
    Subject("mnist_relu_6_200", 50): None,
    Subject("mnist_relu_9_200", 50): None,
    Subject("convSmallRELU__DiffAI", 50): Peer(lower=0.175),
    Subject("convSmallRELU__DiffAI", 51): Peer(12.6),
    Subject("convSmallRELU__DiffAI", 52): Peer(6.0),
    Subject("convSmallRELU__PGDK", 50): Peer(lower=0.149),
    Subject("cifar_base_kw", 1): Peer(lower=0.016),
    Subject("cifar_base_kw", 2): Peer(lower=0.026),
    Subject("cifar_base_kw", 3): Peer(lower=0.002),
    Subject("cifar_deep_kw", 1): Peer(0.2),
    Subject("resnet_2b", 1): Peer(lower=0.0075),
    Subject("resnet_4b_pgd", 0): Peer(23.0),
}
"""alpha-beta-CROWN on one core, 60 s an instance, given radii's witness and without its own attack,
measured on 2026-11-16; None: not run."""

DEMANDED_SECONDS = {
    Subject("mnist-net", 51): 2.0,
    Subject("mnist-net_256x2", 55): 2.0,
    Subject("convSmallRELU__DiffAI", 50): 60.0,
    Subject("convSmallRELU__DiffAI", 51): 60.0,
    Subject("convSmallRELU__DiffAI", 52): 60.0,
    Subject("cifar_deep_kw", 1): 0.5,
    Subject("resnet_4b_pgd", 0): 20.0,
}
"""Instances that have to be closed within this time."""

SETS: dict[str, dict[str, list[Subject]]] = {}
"""Images by network, other than those of the table."""

UNSEEN = SETS["unseen"] = {
    name: [Subject(name, image) for image in range(100, 120)]
    for name in (
        *("mnist-net", "mnist-net_256x4", "mnist_relu_9_100", "convSmallRELU__Point"),
        "cifar_base_kw",
    )
}
"""Images that nobody tuned on."""

SETS["small"] = {"mnist-net_256x2": [Subject("mnist-net_256x2", image) for image in range(50)]}
"""All of them close: what counts is their time."""

PAPERS_GRID = "1/255:0.2:1/255"

SETS["residual"] = {
    name: [Subject(name, image, PAPERS_GRID) for image in range(20)]
    for name in ("resnet_4b_fgsm", "resnet_4b_pgd")
}
"""Networks of the papers, on their grid; `results_CIFAR_JAIR.csv` has some brackets of theirs."""

SETS["first"] = {
    name: [Subject(name, image) for image in range(10)]
    for name in ("resnet_2b", "resnet_4b_standard", "resnet_4b_fgsm", "resnet_4b_pgd")
}
"""With a budget of a few seconds: whether a lower side is there soon."""
