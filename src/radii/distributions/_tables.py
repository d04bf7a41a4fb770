"""Reading foreign tables: columns under their several names, cells as people leave them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.distributions._columns import NO_NUMBER, Array, Float64
from radii.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


ALIASES = {
    "image_id": ("image", "image_name", "image_index", "index", "input", "id"),
    "epsilon_value": ("epsilon", "eps", "critical_epsilon"),
    "smallest_sat_value": ("smallest_sat", "smallest_sat_epsilon"),
    "total_time": ("runtime", "running_time", "run_time", "time", "seconds", "took"),
    "network_path": ("network", "network_name", "model"),
    "original_label": ("label", "true_label", "original_class", "class"),
    "target_class": ("target", "target_label"),
    "result": ("verdict", "status"),
    "split": ("dataset_split", "subset"),
    "training": ("training_method", "train_method"),
}
"""Other names under which a column is published."""

ATTACK_NAMES = re.compile("attack|pgd|fgsm|foolbox|deepfool|carlini", re.IGNORECASE)
"""Names of procedures whose failure to find a counterexample proves nothing."""


def read_table(path: Path) -> pd.DataFrame:
    """A CSV (or Parquet) file: names trimmed, in lower case, and replaced by the usual ones."""
    import pandas as pd

    try:
        if path.suffix == ".parquet":
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(path, skipinitialspace=True, na_values=["None", "none"])
    except (OSError, ValueError, ImportError) as error:
        raise DataError(f"{path}: cannot be read as a table ({error})") from None
    frame.columns = [str(name).strip().lower() for name in frame.columns]
    usual = {}
    for name, others in ALIASES.items():
        if name not in frame.columns:
            usual.update({found: name for found in others if found in frame.columns})
    # The first alias wins where a file has several, as `network` beside `network_name`.
    first = {name: found for found, name in reversed(usual.items())}
    frame = frame.rename(columns={found: name for name, found in first.items()})
    if frame.empty:
        raise DataError(f"{path}: the table has no rows")
    return frame


def with_named_eps(frame: pd.DataFrame) -> pd.DataFrame:
    """A table of queries whose eps became the index: it stands in the first column, without a name.

    An index that only counts rows, or holds no numbers above 0, is none.
    """
    import pandas as pd

    first = str(frame.columns[0])
    if "epsilon_value" in frame.columns or not first.startswith("unnamed"):
        return frame
    values = pd.to_numeric(frame[first], errors="coerce").to_numpy(np.float64)
    is_counting = len(values) > 1 and bool(np.all(values == np.floor(values)))
    if not np.all(values > 0) or is_counting:
        return frame
    return frame.rename(columns={first: "epsilon_value"})


def numbers(path: Path, frame: pd.DataFrame, name: str) -> Float64:
    """A column as numbers; an empty cell is NaN."""
    import pandas as pd

    series = frame[name]
    if series.dtype.kind not in "fiu":
        series = series.astype(object).where(series.notna(), "").astype(str).str.strip()
    values: Float64 = pd.to_numeric(series, errors="coerce").to_numpy(np.float64)
    bad = np.isnan(values) & ~series.isin(["", "nan", "NaN"]).to_numpy() & series.notna().to_numpy()
    if bad.any():
        place = int(np.argmax(bad))
        raise DataError(f"{path}: row {place + 1}: {name} '{series.iloc[place]}' is not a number")
    return values


def whole_numbers(path: Path, frame: pd.DataFrame, name: str) -> Array:
    """A column as whole numbers; none where it is empty or the table lacks it."""
    if name not in frame.columns:
        return np.full(len(frame), NO_NUMBER)
    values = numbers(path, frame, name)
    bad = ~np.isnan(values) & (values != np.floor(values))
    if bad.any():
        place = int(np.argmax(bad))
        raise DataError(f"{path}: row {place + 1}: {name} {values[place]} is not a whole number")
    return np.where(np.isnan(values), NO_NUMBER, values).astype(np.int64)


def input_numbers(path: Path, values: pd.Series[Any]) -> Array:
    """`12`, `12.0`, `image_12` and `mnist_12.npy` are input 12."""
    text = values.astype(str).str.strip().str.replace(r"\.0$", "", regex=True)
    found = text.str.extract(r"(\d+)(?:\.\w+)?$", expand=False)
    if found.isna().any():
        place = int(np.argmax(found.isna()))
        raise DataError(f"{path}: row {place + 1}: image '{text.iloc[place]}' has no number")
    places: Array = found.to_numpy(np.int64)
    return places


def network_names(values: pd.Series[Any]) -> Array:
    """File names without folders and `.onnx`; as many folders are kept as tell networks apart."""
    text = values.astype(str).str.strip().str.replace("\\", "/", regex=False)
    distinct = list(dict.fromkeys(text))
    for kept in range(1, 1 + max(path.count("/") + 1 for path in distinct)):
        short = {path: "/".join(path.split("/")[-kept:]).removesuffix(".onnx") for path in distinct}
        if len(set(short.values())) == len(distinct):
            break
    names: Array = text.map(short).to_numpy(np.str_)
    return names
