"""Tables of others: columns under their several names, cells as people leave them, and doubts.

What about a published table cannot be taken at its word is noted in a sentence; nothing is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.errors import DataError, MissingExtra
from radii.statistics._columns import NO_NUMBER, Array, Float64, joint_codes

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


OTHER_FILES = (
    *(".ipynb", ".ipynb_checkpoints", ".py", ".pyc", ".sh", ".md", ".txt", ".log", ".out", ".err"),
    *(".csv", ".tsv", ".json", ".yaml", ".yml", ".toml", ".xlsx", ".parquet", ".vnnlib", ".pdf"),
    *(".png", ".jpg", ".svg", ".zip", ".gz", ".tar", ".git", ".gitignore", ".ds_store"),
    "__pycache__",
)
"""Ends of what a script finds in a folder of results beside networks."""

MEASUREMENT_COLUMNS = (
    *("image_id", "split", "target_class", "epsilon_value", "smallest_sat_value"),
    *("result", "total_time"),
)
"""What makes two rows the same measurement; the network's name is what they differ in."""

MOST_NAMED = 12


def check_parquet() -> None:
    """A MissingExtra if Parquet files cannot be read or written here."""
    if find_spec("pyarrow") is None:
        raise MissingExtra("pyarrow", "parquet", "a .parquet file")


def read_table(path: Path) -> pd.DataFrame:
    """A CSV (or Parquet) file: names trimmed, in lower case, and replaced by the usual ones."""
    import pandas as pd

    try:
        if path.suffix == ".parquet":
            check_parquet()
            frame = pd.read_parquet(path)
        else:
            frame = pd.read_csv(path, skipinitialspace=True, na_values=["None", "none"])
    except (OSError, ValueError, ImportError) as error:
        raise DataError(f"{path}: cannot be read as a table ({error})") from None
    frame.columns = [str(name).strip().lower() for name in frame.columns]
    usual = {}
    for name, aliases in ALIASES.items():
        if name not in frame.columns:
            usual.update({alias: name for alias in aliases if alias in frame.columns})
    # The first alias wins where a file has several, as `network` beside `network_name`.
    first = {name: alias for alias, name in reversed(usual.items())}
    frame = frame.rename(columns={alias: name for name, alias in first.items()})
    if frame.empty:
        raise DataError(f"{path}: the table has no rows")
    return frame


def with_named_eps(frame: pd.DataFrame) -> pd.DataFrame:
    """A table of queries whose eps became the index: it stands in the first column, without a name.

    An index that only counts rows, or holds no numbers above 0, is left as it is.
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
    digits = text.str.extract(r"(\d+)(?:\.\w+)?$", expand=False)
    if digits.isna().any():
        place = int(np.argmax(digits.isna()))
        raise DataError(f"{path}: row {place + 1}: image '{text.iloc[place]}' has no number")
    image_numbers: Array = digits.to_numpy(np.int64)
    return image_numbers


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


# --- what cannot be taken at its word


def note_rows(notes: list[str], path: Path, rows: Array, what: str, noun: str = "rows") -> None:
    """How many rows are marked, what about them, and which are the first (counted from 1)."""
    if rows.any():
        places = np.flatnonzero(rows)
        shown = ", ".join(str(place + 1) for place in places[:5])
        more = ", ..." if len(places) > 5 else ""
        where = f" (rows {shown}{more})" if noun == "rows" else ""
        notes.append(f"{path}: {len(places)} of {len(rows)} {noun} {what}{where}")


def note_unsolved(notes: list[str], path: Path, unsolved: Array, noun: str = "rows") -> None:
    """Results without any answer: they are kept, and are no radius of 0."""
    what = "have no answer, neither a proof nor a counterexample: kept as [0, inf)"
    note_rows(notes, path, unsolved, what, noun)


def note_names(notes: list[str], path: Path, networks: Array) -> None:
    """Networks that bear the name of another kind of file."""
    names, counts = np.unique(networks, return_counts=True)
    for name, count in zip(names.tolist(), counts.tolist(), strict=True):
        if name.lower().endswith(OTHER_FILES):
            notes.append(
                f"{path}: {count} of {len(networks)} rows are of '{name}', which is no network's "
                "name: they are kept under it"
            )


def note_splits(notes: list[str], path: Path, splits: Array | None) -> None:
    """Rows of no split where others have one."""
    if splits is not None and np.any(splits != ""):
        note_rows(notes, path, splits == "", "have no split, which others have")


def note_repeats(notes: list[str], path: Path, keys: Sequence[Array]) -> None:
    """Rows of an instance that has another row already."""
    codes = joint_codes(keys)
    _, first = np.unique(codes, return_index=True)
    again = np.ones(len(codes), np.bool_)
    again[first] = False
    note_rows(notes, path, again, "are of an instance that an earlier row is of: all are kept")


def note_copies(notes: list[str], path: Path, frame: pd.DataFrame, networks: Array) -> None:
    """Measurements that stand under several networks' names, word for word with their times.

    Brackets on a grid may well agree, and so may times that are a limit; measured times may not.
    """
    if "total_time" not in frame.columns:
        return
    seconds = numbers(path, frame, "total_time")
    is_measured = np.isfinite(seconds) & (seconds != np.floor(seconds))
    columns = [name for name in MEASUREMENT_COLUMNS if name in frame.columns]
    measured = frame.loc[is_measured, columns].assign(network=networks[is_measured])
    groups = measured.groupby(columns, dropna=False, sort=False)
    sharing, sizes = groups["network"].agg(frozenset), groups.size()
    for names in _joined_groups({group for group in sharing if len(group) > 1}):
        is_copied = np.array([len(group) > 1 and group <= names for group in sharing], np.bool_)
        shown = sorted(names)[:MOST_NAMED] + ["..."] * (len(names) > MOST_NAMED)
        count = int(is_copied.sum())
        notes.append(
            f"{path}: at least {int(sizes[is_copied].sum())} of {len(frame)} rows repeat {count} "
            f"{'measurement' if count == 1 else 'measurements'}, times included, under the names "
            f"of {len(names)} networks ({', '.join(shown)}): at most one name of each can be "
            "right, and all are kept"
        )


def _joined_groups(groups: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Groups that have a name in common, as one; the largest first."""
    parts: list[frozenset[str]] = []
    for group in groups:
        touching = [part for part in parts if part & group]
        parts = [part for part in parts if not part & group]
        parts.append(group.union(*touching))
    return sorted(parts, key=lambda part: (-len(part), sorted(part)))
