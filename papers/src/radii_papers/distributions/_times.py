"""What the published brackets cost: Tables 7, 11, 12 and 13, and whether their totals add up."""

from __future__ import annotations

import numpy as np

from radii.statistics import Distribution, Float64
from radii_papers._steps import Paragraph, Part, StudySettings
from radii_papers._tables import EVERY_ROW, Beside, Cell, StudyTable, reasons_of
from radii_papers.distributions._claims import cost_claim
from radii_papers.distributions._numbers import (
    CONVENTIONAL_HOURS,
    RUNNING_TIME_TOTALS,
    RUNNING_TIMES,
)
from radii_papers.distributions._public import (
    NETWORKS_OF_SECTION_4,
    SPLITS,
    PublicResults,
    PublishedNetwork,
    networks_of,
    unanswered_images,
)

HOUR = 3600.0

OTHER_RUN = "the file with single queries is of another run, with time-outs at 360 s"
NO_QUERIES = "single queries are public, not at hand"
COPIES = "the file with single queries repeats those of other networks under this name"


def _seconds(part: Distribution | None) -> float | None:
    return None if part is None else float(np.nansum(part.column("seconds")))


def conventional_hours(results: PublicResults, _: StudySettings) -> list[Part]:
    """Table 7, its columns for k = 2 on the wall: the only k whose times are public."""
    rows, all_seconds, all_images = [], 0.0, 0
    for network in NETWORKS_OF_SECTION_4:
        part = results.part(network, None, is_dropped=False)
        seconds, images = _seconds(part), 0 if part is None else len(part)
        paper = CONVENTIONAL_HOURS[(network.architecture,)]
        rows.append(_hours_row(network.title, seconds, images, paper))
        all_seconds, all_images = all_seconds + (seconds or 0), all_images + images
    found = all_seconds if all_images else None
    rows.append(_hours_row("total", found, all_images, CONVENTIONAL_HOURS[("total",)]))
    columns = ("network", "hours, k = 2", "hours an image", "reason of a difference")
    return [
        StudyTable("table-7", "Table 7: hours on the wall at k = 2", columns, tuple(rows)),
        Paragraph(
            "Its other columns are of CPU time and of k = 1, 4, 8 and 16, which the tables do "
            "not have. All rows of the paper's images count, with an answer or without."
        ),
    ]


def _hours_row(
    title: str, seconds: float | None, images: int, paper: tuple[str, ...]
) -> tuple[Cell, ...]:
    hours = None if seconds is None else seconds / HOUR
    cells: dict[str, Cell] = {
        "hours, k = 2": Beside(hours, paper[0]),
        "hours an image": Beside(None if hours is None else hours / images, paper[1]),
    }
    return (title, *cells.values(), reasons_of(title, cells, {}))


def _times_table(results: PublicResults, dataset: str, number: int) -> StudyTable:
    rows = []
    for network in networks_of(dataset):
        paper = RUNNING_TIMES[network.architecture, network.training]
        cells, reasons = _times_row(results, network, paper)
        rows.append((network.title, *cells.values(), reasons_of(network.title, cells, reasons)))
    title = f"Table {number}: running times on {dataset}"
    return StudyTable(
        f"table-{number}", title, ("network", *cells, "reason of a difference"), tuple(rows)
    )


def _times_row(
    results: PublicResults, network: PublishedNetwork, paper: tuple[str, ...]
) -> tuple[dict[str, Cell], dict[tuple[str, str], str]]:
    """By single queries where they are this network's, else by the seconds of its rows."""
    queries = _queries_of(results, network)
    part = results.part(network, None, images=None, is_dropped=False)
    seconds = _seconds(queries) if queries is not None else _seconds(part)
    images = None if part is None else len(part) + _unlisted(network)
    hours = None if seconds is None else seconds / HOUR
    timeouts = errors = per_query = None
    if queries is not None and hours is not None:
        timeouts = int(queries.column("timeouts").sum())
        errors = int(queries.column("missing").sum()) - timeouts
        per_query = hours / int(queries.column("queries").sum())
    cells: dict[str, Cell] = {
        "hours": Beside(hours, paper[0]),
        "time-outs": Beside(timeouts, paper[1]),
        "errors": Beside(errors, paper[2]),
        "hours an image": Beside(hours / images if hours and images else None, paper[3]),
        "hours a query": Beside(per_query, paper[4]),
        "from": "queries" if queries is not None else "rows",
    }
    why = _why_other_hours(network)
    reasons = {(EVERY_ROW, name): why for name in ("hours", "hours an image")}
    return cells, reasons | REASONS_11


def _unlisted(network: PublishedNetwork) -> int:
    """Images that the file leaves out and that took time all the same."""
    if network.dataset != "CIFAR-10":
        return 0
    return sum(unanswered_images(network, split) for split in SPLITS)


def _why_other_hours(network: PublishedNetwork) -> str:
    if network.dataset == "CIFAR-10":
        return "the file leaves out images without any answer"
    if network.training == "Standard" and network.dataset == "MNIST":
        return "the paper's are hours of the CPU, those of the rows are on the wall"
    return "the paper's are sums over queries, those of the rows are of whole searches"


REASONS_11 = {
    ("resnet_4b FGSM", "hours"): (
        "the paper's hours of an image times its images are about a seventh of its total"
    )
}


def _queries_of(results: PublicResults, network: PublishedNetwork) -> Distribution | None:
    """A network's single queries, if the paper's numbers are of these.

    Those of convolutional MNIST networks are of another run (time-outs at 360 s), and the file of
    GTSRB has one network's queries under nearly every name: its own are those of gtsrb_7_1024
    under standard training.
    """
    if (
        network.dataset == "MNIST"
        and not network.is_convolutional
        and network.training != "Standard"
    ):
        table, name = results.queries("fully connected"), network.name
    elif network.title == "gtsrb_7_1024 Standard":
        table, name = results.queries("GTSRB"), network.name
    else:
        return None
    if table is None or name not in table.networks:
        return None
    return table.only(network=name)


def mnist_times(results: PublicResults, _: StudySettings) -> list[Part]:
    """Table 11."""
    return [
        Paragraph(
            "Hours are those of single queries where the file of queries is of the paper's run: "
            "for fully connected networks under FGSM and PGD. Elsewhere they are the seconds of "
            "the rows, which for k = 2 are seconds on the wall and not of the CPU."
        ),
        _times_table(results, "MNIST", 11),
        Paragraph(f"Convolutional networks: {OTHER_RUN}."),
    ]


def cifar_times(results: PublicResults, _: StudySettings) -> list[Part]:
    """Table 12."""
    return [_times_table(results, "CIFAR-10", 12), Paragraph(f"Of CIFAR-10, {NO_QUERIES}.")]


def gtsrb_times(results: PublicResults, _: StudySettings) -> list[Part]:
    """Table 13, and the totals of all three tables."""
    return [
        _times_table(results, "GTSRB", 13),
        Paragraph(f"Of networks other than gtsrb_7_1024 Standard, {COPIES}."),
        _totals_table(),
        Paragraph(
            "The public file of GTSRB queries holds two networks' queries under the names of "
            "nearly all (Table 13); totals of Tables 11 and 12 are not the sums of their rows.",
            is_finding=True,
        ),
        cost_claim(_cost_ratios(results)),
    ]


def _cost_ratios(results: PublicResults) -> dict[str, Float64]:
    """Logarithms of a fully connected network's seconds by those under standard training, of the
    images of a split that both have."""
    networks = networks_of("MNIST", "CIFAR-10", "GTSRB", convolutional=False)
    times = {network: _seconds_by_image(results, network) for network in networks}
    bases = {n.architecture: times[n] for n in networks if n.training == "Standard"}
    ratios = {}
    for network, own in times.items():
        base = bases.get(network.architecture, {})
        shared = [key for key in own if key in base]
        if network.training != "Standard" and len(shared) > 1:
            ratios[network.title] = np.log([own[key] / base[key] for key in shared])
    return ratios


def _seconds_by_image(
    results: PublicResults, network: PublishedNetwork
) -> dict[tuple[str, int], float]:
    """Of the paper's images of both splits; those of a split that is another's are left out."""
    splits = SPLITS[:1] if network.title in results.relabelled else SPLITS
    found: dict[tuple[str, int], float] = {}
    for split in splits:
        part = results.part(network, split, is_dropped=False)
        if part is not None:
            rows = zip(part.column("input").tolist(), part.column("seconds").tolist(), strict=True)
            found |= {(split, image): seconds for image, seconds in rows if seconds > 0}
    return found


def _totals_table() -> StudyTable:
    """The paper's totals beside the sums of its own rows."""
    groups = {
        "fully-connected_MNIST": networks_of("MNIST", convolutional=False),
        "convolutional_MNIST": networks_of("MNIST", convolutional=True),
        "CIFAR-10": networks_of("CIFAR-10"),
        "GTSRB": networks_of("GTSRB"),
    }
    rows = []
    for name, networks in groups.items():
        printed = [RUNNING_TIMES[n.architecture, n.training] for n in networks]
        sums = [sum(float(row[place]) for row in printed) for place in range(3)]
        totals = RUNNING_TIME_TOTALS[(name,)]
        cells = [Beside(round(s, 3), total) for s, total in zip(sums, totals, strict=True)]
        does_add_up = all(cell.agrees for cell in cells)
        rows.append((name.replace("_", " "), *cells, "" if does_add_up else "does not add up"))
    columns = ("sum of the paper's rows", "hours", "time-outs", "errors", "reason of a difference")
    title = "Tables 11 to 13: the paper's totals beside the sums of its own rows"
    return StudyTable("table-11-13-totals", title, columns, tuple(rows))
