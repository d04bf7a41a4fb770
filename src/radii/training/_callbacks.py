"""A callback for a training loop of your own: the robustness distribution, epoch after epoch."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from radii import runs
from radii.datasets import as_dataset
from radii.errors import ExperimentError, InputError, StoreError, writing
from radii.networks import as_network
from radii.problem import Domain, Grid
from radii.runs import Settings
from radii.statistics import Distribution
from radii.store import Store

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn


LOGGED_INPUTS = 20
"""Few, so that an epoch waits for seconds: for trends, not for claims about all inputs."""
PROOF_SECONDS = 0.2
"""Seconds in which each input's proof goes as far as it can: bounds, and a little branching."""
GRID_STEPS = 200
"""The grid's default step is this part of the domain's width; it ends at half the width."""


class RobustnessLog:
    """`log = RobustnessLog(data, domain=(0, 1)); log(epoch, module)` in each epoch.

    Measures the brackets of the same few inputs each time, drawn once from `data`: an attack, then
    proofs with a short limit (`timeout` seconds an input). Brackets are true but wide: measure the
    finished network with `radii run`. The module is left as it was, and so is torch's randomness.

    `table` has a row an epoch: accuracy, the median and other quantiles of the radii (misclassified
    inputs have radius 0), and robust accuracy at each of `eps`, each as what is proven and what is
    not refuted. It is written to `csv` after each epoch; if that file is there already, it goes on,
    and an epoch that is measured again is replaced. `tensorboard` is a directory or a writer; if
    the package is not installed, a warning says so and the rest goes on without it. Further
    `settings` are those of an experiment, such as norm, property, grid or seed.
    """

    def __init__(
        self,
        data: Any,
        *,
        domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike],
        every: int = 1,
        inputs: int = LOGGED_INPUTS,
        eps: Sequence[float] = (),
        quantiles: Sequence[float] = (0.1, 0.9),
        mean: npt.ArrayLike | None = None,
        std: npt.ArrayLike | None = None,
        input_shape: tuple[int, ...] | None = None,
        csv: Path | str | None = None,
        tensorboard: Any = None,
        **settings: Any,
    ) -> None:
        if every < 1:
            raise ExperimentError(f"every {every} must be a number of epochs, at least 1")
        if any(not at >= 0 for at in eps) or any(not 0 <= share <= 1 for share in quantiles):
            raise ExperimentError("eps must be at least 0, and quantiles between 0 and 1")
        self.every = every
        self.eps = tuple(float(at) for at in eps)
        self.quantiles = tuple(float(share) for share in quantiles)
        self._settings = _experiment_settings(domain, settings)
        whole = as_dataset(data)
        self.data = whole.random(min(inputs, len(whole)), self._settings.seed)
        self._network = {
            "domain": domain,
            "mean": mean,
            "std": std,
            "input_shape": input_shape or whole.shape,
        }
        self.last: Distribution | None = None
        """The brackets of the last epoch that was measured."""
        self._rows: dict[int, dict[str, float]] = {}
        self._csv = None if csv is None else Path(csv)
        self._read()
        self._writer, self._is_own_writer = _writer(tensorboard)

    def __call__(self, epoch: int, module: nn.Module) -> dict[str, float] | None:
        """Measure the module, unless it is not this epoch's turn; the row that is in the table."""
        if epoch % self.every:
            return None
        import torch

        started = time.perf_counter()
        on_cuda = torch.cuda.is_available()
        devices = [torch.cuda.current_device()] if on_cuda else []
        with torch.random.fork_rng(devices=devices), Store.in_memory() as store:
            network = as_network(module, name="module", **self._network)  # type: ignore[arg-type]
            runs.plan((network,), self.data, self._settings).run(store)
            self.last = Distribution.from_store(store)
        row = self._row(self.last) | {"seconds": time.perf_counter() - started}
        self._rows[epoch] = row
        self._write()
        self._tell_tensorboard(epoch, row, self.last)
        return {"epoch": epoch, **row}

    @property
    def table(self) -> pd.DataFrame:
        """A row an epoch, in order."""
        import pandas as pd

        rows = [{"epoch": epoch, **self._rows[epoch]} for epoch in sorted(self._rows)]
        return pd.DataFrame(rows, columns=self.columns)

    @property
    def columns(self) -> list[str]:
        shares = [f"robust_{at:g}_{side}" for at in self.eps for side in ("proven", "not_refuted")]
        names = ["median", *(f"q{100 * share:g}" for share in self.quantiles)]
        radii = [f"{name}_{side}" for name in names for side in ("lower", "upper")]
        return ["epoch", "inputs", "accuracy", *radii, *shares, "seconds"]

    def _row(self, distribution: Distribution) -> dict[str, float]:
        values: list[float] = [len(distribution), float(distribution.correct.mean())]
        for share in (0.5, *self.quantiles):
            values += distribution.quantile(share)
        for at in self.eps:
            accuracy = distribution.robust_accuracy(at)
            values += [accuracy.proven, accuracy.not_refuted]
        return dict(zip(self.columns[1:-1], values, strict=True))

    # --- where it is written

    def _read(self) -> None:
        if self._csv is None or not self._csv.exists():
            return
        import pandas as pd

        try:
            frame = pd.read_csv(self._csv)
        except (OSError, ValueError) as error:
            raise StoreError(f"{self._csv}: cannot be read as a table ({error})") from None
        if list(frame.columns) != self.columns:
            raise StoreError(f"{self._csv}: is not a log with these columns; name another file")
        try:
            for logged in frame.to_dict("records"):
                row = {str(name): float(value) for name, value in logged.items()}
                self._rows[int(row.pop("epoch"))] = row
        except ValueError as error:
            raise StoreError(f"{self._csv}: is not a log of numbers ({error})") from None

    def _write(self) -> None:
        if self._csv is None:
            return
        beside = self._csv.with_name(self._csv.name + ".tmp")
        with writing(self._csv):
            self._csv.parent.mkdir(parents=True, exist_ok=True)
            self.table.to_csv(beside, index=False)
            beside.replace(self._csv)

    def _tell_tensorboard(
        self, epoch: int, row: dict[str, float], distribution: Distribution
    ) -> None:
        if self._writer is None:
            return
        for name, value in row.items():
            if math.isfinite(value):
                self._writer.add_scalar(f"radii/{name}", value, epoch)
        witnessed = distribution.upper[np.isfinite(distribution.upper)]
        for name, values in (("lower", distribution.lower), ("upper", witnessed)):
            if len(values):
                self._writer.add_histogram(f"radii/{name}", values, epoch)
        self._writer.flush()

    @property
    def writes_tensorboard(self) -> bool:
        return self._writer is not None

    def close(self) -> None:
        """Close TensorBoard's file, if this log opened it."""
        if self._writer is not None and self._is_own_writer:
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _experiment_settings(
    domain: Domain | tuple[npt.ArrayLike, npt.ArrayLike], options: dict[str, Any]
) -> Settings:
    low, high = (domain.low, domain.high) if isinstance(domain, Domain) else domain
    if "grid" not in options:
        widest = float(np.max(np.subtract(high, low)))
        if not 0 < widest < math.inf:
            raise InputError("domain: its high end must be above its low end, and both finite")
        width = Fraction(str(widest))
        step = width / GRID_STEPS
        options["grid"] = str(Grid(step, width / 2 + step, step))
    try:
        return Settings(**{"timeout": PROOF_SECONDS, **options})
    except TypeError as error:
        raise ExperimentError(f"not a setting of an experiment: {error}") from None


def _writer(given: Any) -> tuple[Any, bool]:
    """A writer of TensorBoard's format, and whether it was opened here."""
    if given is None or hasattr(given, "add_scalar"):
        return given, False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        warnings.warn(
            "RobustnessLog writes nothing for TensorBoard: the package 'tensorboard' is not "
            "installed (pip install 'radii[tensorboard]'); the table and the CSV go on without it",
            stacklevel=3,
        )
        return None, False
    return SummaryWriter(str(given)), True
