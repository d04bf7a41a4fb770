"""The networks themselves: accuracies (Tables 14 to 16) and architectures (Tables 17 to 19).

Accuracies of whole data sets are not public. What the tables of results do tell is the share of the
paper's images that is classified correctly, and within which bounds robust accuracy lies.
"""

from __future__ import annotations

from pathlib import Path

from radii.statistics import Distribution, clopper_pearson
from radii_papers._steps import Paragraph, Part, StudySettings
from radii_papers._tables import (
    Beside,
    Cell,
    StudyTable,
    decimals,
    interval_text,
    reasons_of,
)
from radii_papers.distributions._numbers import (
    ACCURACIES,
    ARCHITECTURES,
    PGD_EPS,
    QUALITY,
    STATISTICS,
)
from radii_papers.distributions._public import (
    ALL_NETWORKS,
    PAPER_IMAGES,
    PublicResults,
    PublishedNetwork,
    Split,
    networks_of,
    unanswered_images,
)

CONFIDENCE = 0.95

TABLE_NUMBERS = {"MNIST": 14, "CIFAR-10": 15, "GTSRB": 16}

TABLE_OF_ARCHITECTURE = {"MNIST": 17, "CIFAR-10": 18, "GTSRB": 19}


def accuracy_tables(results: PublicResults, _: StudySettings) -> list[Part]:
    """Tables 14, 15 and 16."""
    parts: list[Part] = [
        Paragraph(
            f"Of each split the tables of results have a row for every one of {PAPER_IMAGES} "
            "images that is classified correctly; images without any answer, which they leave "
            "out, are added by the paper's count. Their number, with its "
            f"{100 * CONFIDENCE:g} % interval (Clopper and Pearson), stands beside the paper's "
            "accuracy. At the eps of the paper's PGD attacks the brackets bound robust "
            "accuracy on the same images, from what is proven to what is not refuted, wrongly "
            "classified ones counted; the paper's PGD accuracy, which can only be too large, "
            "should not lie below that by more than chance."
        )
    ]
    tables = [_accuracy_table(results, dataset) for dataset in TABLE_NUMBERS]
    return [*parts, *tables, _printed_twice()]


def _accuracy_table(results: PublicResults, dataset: str) -> StudyTable:
    eps = PGD_EPS[dataset]
    rows = []
    for network in networks_of(dataset):
        paper = ACCURACIES[network.architecture, network.training]
        row: list[Cell] = [network.title]
        for split, printed in zip(("train", "test"), paper[:2], strict=True):
            row += [_share(results, network, split, printed)]  # type: ignore[arg-type]
        for value, printed in zip(eps, paper[2:], strict=True):
            row += [_robust_share(results, network, value), printed]
        rows.append(tuple(row))
    names = [f"{value:g}" if dataset == "MNIST" else f"{round(255 * value)}/255" for value in eps]
    columns = ["network", "correct of 100, train (paper %)", "correct of 100, test (paper %)"]
    for name in names:
        columns += [f"robust at {name}, test, %", f"PGD {name}, paper %"]
    number = TABLE_NUMBERS[dataset]
    title = f"Table {number}: accuracies of the {dataset} networks"
    return StudyTable(f"table-{number}", title, tuple(columns), tuple(rows))


def _share(
    results: PublicResults, network: PublishedNetwork, split: Split, printed: str
) -> str | None:
    """How many of the paper's images have a row, with what that says about all images."""
    part = results.part(network, split, is_dropped=False)
    if part is None:
        return None
    count = len(set(part.column("input").tolist())) + _unlisted(network, split, part)
    low, high = clopper_pearson(count, PAPER_IMAGES, CONFIDENCE)
    sign = "" if 100 * low <= float(printed) <= 100 * high else ", outside"
    return f"{count}, {100 * low:.0f}–{100 * high:.0f} ({printed}{sign})"


def _robust_share(results: PublicResults, network: PublishedNetwork, eps: float) -> str | None:
    """Bounds on robust accuracy on the testing images, in per cent, or None without rows."""
    part = results.part(network, "test", is_dropped=False)
    if part is None:
        return None
    least = int((part.lower >= eps - 1e-9).sum())
    most = int((part.upper > eps + 1e-9).sum()) + _unlisted(network, "test", part)
    return interval_text(100 * least / PAPER_IMAGES, 100 * most / PAPER_IMAGES, 0)


def _unlisted(network: PublishedNetwork, split: Split, part: Distribution) -> int:
    """Images that are classified correctly, and that the file leaves out for want of an answer."""
    return 0 if part.unsolved else unanswered_images(network, split)


def _printed_twice() -> StudyTable:
    """Testing accuracies that the paper gives in several places, where they are not the same."""
    rows = []
    for (architecture, training), row in STATISTICS.items():
        last = float(ACCURACIES[architecture, training][1])
        quality = QUALITY.get((architecture, training))
        first = None if quality is None else 100 * float(quality[0])
        second = 100 * float(row[9])
        others = [value for value in (first, second) if value is not None]
        wrong = [value for value in others if abs(value - last) > 0.11]
        if wrong:
            same = [
                f"{other[0]} {other[1]}"
                for other, numbers in ACCURACIES.items()
                if other[0] != architecture
                and any(abs(value - float(numbers[1])) < 0.05 for value in wrong)
                and other[1] == training
            ]
            rows.append((f"{architecture} {training}", first, second, last, ", ".join(same)))
    columns = (
        *("network", "Tables 2 and 3, %", "Tables 8 to 10, %", "Tables 14 to 16, %"),
        "the odd one is that of",
    )
    title = "Testing accuracies that the paper prints several times, and differently"
    forms = ("", ".1f", ".1f", ".1f", "")
    return StudyTable("accuracies-twice", title, columns, tuple(rows), forms)


# --- architectures


def architecture_tables(results: PublicResults, _: StudySettings) -> list[Part]:
    """Tables 17, 18 and 19, counted in the ONNX files that are at hand."""
    found: dict[str, Path] = {}
    for network in ALL_NETWORKS:
        if network.file in results.networks:
            found.setdefault(network.architecture, results.networks[network.file])
    parts: list[Part] = []
    for dataset, number in TABLE_OF_ARCHITECTURE.items():
        rows: list[tuple[Cell, ...]] = []
        for (name,), paper in ARCHITECTURES.items():
            if _dataset_of(name) == dataset:
                counts = count_layers(found[name]) if name in found else (None,) * 4
                cells = dict(zip(COUNTED, _count_cells(counts, paper), strict=True))
                rows.append((name, *cells.values(), reasons_of(name, cells, REASONS_17)))
        columns = ("network", *COUNTED, "reason of a difference")
        title = f"Table {number}: {dataset} architectures"
        parts.append(StudyTable(f"table-{number}", title, columns, tuple(rows)))
    return [*parts, Paragraph("A dash: the network's file is not at hand.")]


COUNTED = ("neurons", "parameters", "linear layers", "convolutions")

REASONS_17 = {("resnet_4b", "convolutions"): "the paper does not count those of shortcuts"}


def _dataset_of(architecture: str) -> str:
    if architecture.startswith("gtsrb"):
        return "GTSRB"
    is_cifar = architecture.startswith(("cifar", "resnet", "conv_big"))
    return "CIFAR-10" if is_cifar else "MNIST"


def _count_cells(counts: tuple[int | None, ...], paper: tuple[str, ...]) -> list[Beside]:
    return [
        Beside(None if count is None else _as_written(count, printed), printed)
        for count, printed in zip(counts, paper, strict=True)
    ]


def _as_written(count: int, printed: str) -> str:
    """Thousands with the digits that the paper gives them, rounded or cut off as it does."""
    if not printed.endswith("K"):
        return str(count)
    digits = decimals(printed[:-1])
    cut = f"{int(count / 1000 * 10**digits) / 10**digits:.{digits}f}K"
    return cut if cut == printed else f"{count / 1000:.{digits}f}K"


def count_layers(path: Path) -> tuple[int, int, int, int]:
    """Activations, parameters, linear and convolutional layers of an ONNX file."""
    import onnx
    from onnx import numpy_helper

    from radii.networks import OperatorKind, load_network

    graph = onnx.load(path).graph
    kinds = [node.op_type for node in graph.node]
    network = load_network(path, domain=(0.0, 1.0))
    bent = (OperatorKind.PIECEWISE_LINEAR, OperatorKind.SMOOTH)
    activations = sum(node.size for node in network.graph.nodes if node.kind in bent)
    parameters = sum(
        numpy_helper.to_array(tensor).size
        for tensor in graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT
    )
    linear = sum(kind in ("Gemm", "MatMul") for kind in kinds)
    return activations, parameters, linear, kinds.count("Conv")
