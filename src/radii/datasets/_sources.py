"""Which images of which data set, written as text.

digits                          the test split of a named set
mnist:train[0:100]              Python's slices, with steps and negative bounds
mnist:test[7]  mnist:test[3,5]  single images
images.npz[0:50]  folder  table.csv
mnist:test[first 100]
mnist:test[random 100 seed 1]       without replacement; seed 0 if none is given
mnist:test[stratified 100 seed 1]   classes keep their proportions
mnist:test[per-class 10]            the first ten of each class; with `seed 1`, drawn
mnist:test[class 3,5]               only these labels
mnist:train[0:1000][random 50]      from left to right
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files as resource_files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.datasets._archives import open_tree
from radii.datasets._cache import check_placed, read_placed
from radii.datasets._catalogue import (
    PublishedSet,
    find_published,
    known_layouts,
    published_names,
)
from radii.datasets._dataset import Dataset, Stack, from_arrays
from radii.datasets._files import is_verona, read_csv, read_folder, read_npz, read_verona
from radii.datasets._layouts import recognise
from radii.errors import DataError, did_you_mean
from radii.plugins import PluginGroup, load_plugin, package_of, plugin_names

GRAMMAR = (
    "[START:STOP:STEP], [INDEX], [first N], [random N seed S], [stratified N seed S], "
    "[per-class N] or [class C]"
)

_BRACKETS = re.compile(r"(?P<location>.*?)(?P<steps>(?:\[[^\[\]]*\])*)", re.DOTALL)
_N = r"[0-9]{1,15}"
_SLICE = re.compile(rf"(-?{_N})?\s*:\s*(-?{_N})?\s*(?::\s*(-?{_N})?)?")
_LIST = re.compile(rf"-?{_N}(?:\s*,\s*-?{_N})*")
_DRAW = re.compile(rf"(first|random|stratified|per-class)\s+({_N})(?:\s+seed\s+({_N}))?")
_CLASSES = re.compile(rf"class\s+({_N}(?:\s*,\s*{_N})*)")


@dataclass(frozen=True, slots=True)
class SelectionStep:
    """One bracket of a spec, applied to what the brackets before it left."""

    kind: str
    numbers: tuple[int | None, ...]
    seed: int | None = None

    @classmethod
    def parse(cls, text: str, spec: str) -> SelectionStep:
        body = " ".join(text.split())
        if match := _SLICE.fullmatch(body):
            return cls("slice", tuple(None if g is None else int(g) for g in match.groups()))
        if _LIST.fullmatch(body):
            return cls("indices", _numbers(body))
        if match := _CLASSES.fullmatch(body):
            return cls("class", _numbers(match[1]))
        match = _DRAW.fullmatch(body)
        if match is None or (match[1] == "first" and match[3]):
            raise DataError(f"data '{spec}': selection [{text}] is not one of {GRAMMAR}")
        return cls(match[1], (int(match[2]),), None if match[3] is None else int(match[3]))

    def apply(self, data: Dataset) -> Dataset:
        whole = [number for number in self.numbers if number is not None]
        match self.kind:
            case "slice":
                return data.take(slice(*self.numbers))
            case "indices":
                return data.take(whole)
            case "class":
                return data.of_classes(*whole)
            case "first":
                return data.first(whole[0])
            case "random":
                return data.random(whole[0], self.seed or 0)
            case "stratified":
                return data.stratified(whole[0], self.seed or 0)
            case _:
                return data.per_class(whole[0], self.seed)


@dataclass(frozen=True, slots=True)
class Spec:
    """A location (the name of a set, or a path), a split if one is named, and the selections."""

    location: str
    split: str | None
    steps: tuple[SelectionStep, ...]

    @classmethod
    def parse(cls, text: str) -> Spec:
        """A DataError explains what cannot be read; nothing is loaded."""
        stripped = text.strip()
        match = _BRACKETS.fullmatch(stripped)
        location, brackets = (match["location"], match["steps"]) if match else (stripped, "")
        if brackets and exists(stripped):
            location, brackets = stripped, ""
        steps = tuple(
            SelectionStep.parse(body, text) for body in re.findall(r"\[([^\[\]]*)\]", brackets)
        )
        split = None
        location = location.rstrip()
        if not exists(location):
            before, colon, after = location.rpartition(":")
            if colon and before and not {"/", "\\"} & set(after):
                location, split = before, after.strip() or None
        if not location:
            raise DataError(f"data '{text}' names no data set and no path")
        return cls(location, split, steps)

    def select(self, data: Dataset) -> Dataset:
        for step in self.steps:
            data = step.apply(data)
        return data


def exists(path: str | Path) -> bool:
    """There is such a file or directory, and this process may look at it."""
    try:
        return Path(path).expanduser().exists()
    except (OSError, RuntimeError):  # no permission, name too long, no such home directory
        return False


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


# From a name, a path or a spec to a data set.


ARCHIVE_SUFFIXES = (".zip", ".tar", ".tgz", ".gz", ".xz", ".bz2", ".deb")


def load(name: str, split: str = "test") -> Dataset:
    """A split of the embedded digits, of a published set that is in place, or of a set that another
    package declares."""
    if name.lower() == DIGITS:
        return _load_digits(split)
    known = find_published(name)
    if known is None:
        declared = _load_declared(name, split)
        if declared is None:
            raise DataError(f"data set '{name}' is not one of {', '.join(dataset_names())}")
        return declared
    _check_split(known, split)
    content = read_placed(known, split)
    return Dataset(
        Stack(content.images, 255.0),
        content.labels.astype(np.int64),
        name=known.name,
        split=split,
        classes=known.classes,
    )


def _check_split(known: PublishedSet, split: str) -> None:
    if split not in ("train", "test"):
        raise DataError(f"data set '{known.name}' has splits train and test, not '{split}'")


def dataset_names() -> tuple[str, ...]:
    """Radii's own and those of other packages."""
    own = (DIGITS, *published_names())
    return (*own, *(name for name in plugin_names(PluginGroup.DATASETS) if name not in own))


def _load_declared(name: str, split: str) -> Dataset | None:
    """A set that another package declares, as a function of the split; None if none does."""
    loader = load_plugin(PluginGroup.DATASETS, name)
    if loader is None:
        return None
    origin = f"data set '{name}' of package '{package_of(PluginGroup.DATASETS, name)}'"
    if not callable(loader):
        raise DataError(f"{origin} must be a function of the split, not {loader!r}")
    dataset = loader(split)
    if not isinstance(dataset, Dataset):
        raise DataError(f"{origin} gives {type(dataset).__name__}, not a radii Dataset")
    return dataset


def check_spec(spec: str) -> None:
    """A DataError, the one of `load_spec`, if what it names is not there; nothing is loaded."""
    parsed = Spec.parse(spec)
    if not is_named(parsed.location):
        _check_exists(Path(parsed.location))
    elif parsed.location.lower() != DIGITS and (known := find_published(parsed.location)):
        _check_split(known, parsed.split or "test")
        check_placed(known)


def is_named(location: str) -> bool:
    """It is the name of a data set, radii's own or another package's, and not a place."""
    name = location.lower()
    if name == DIGITS or find_published(name) is not None:
        return True
    return name in map(str.lower, plugin_names(PluginGroup.DATASETS))


def location_of(source: str) -> str:
    """The same for all selections of one data set."""
    try:
        location = Spec.parse(source).location
    except DataError:
        return source
    published = None if location.lower() == DIGITS else find_published(location)
    if published is not None:
        return published.name
    return location.lower() if is_named(location) else location


def absolute_source(source: str) -> str:
    """The text that names the same inputs from any folder."""
    location = Spec.parse(source).location
    path = Path(location).expanduser()
    if is_named(location) or not path.exists():
        return source
    return source.strip().replace(location, str(path.resolve()), 1)


def load_spec(spec: str | Spec, *, label: str | None = None) -> Dataset:
    """The images that a spec asks for; `radii.datasets._sources` shows how it is written.

    `label` is the column of a CSV file that holds the label.
    """
    parsed = Spec.parse(spec) if isinstance(spec, str) else spec
    return parsed.select(load_whole(parsed, label=label))


def load_whole(spec: str | Spec, *, label: str | None = None) -> Dataset:
    """What a spec selects from."""
    parsed = Spec.parse(spec) if isinstance(spec, str) else spec
    is_name = parsed.location.lower() == DIGITS or find_published(parsed.location)
    if is_name:
        return load(parsed.location, parsed.split or "test")
    path = Path(parsed.location)
    if not exists(path):
        declared = _load_declared(parsed.location, parsed.split or "test")
        if declared is not None:
            return declared
    place = path.expanduser() if exists(path) else path
    return read(place, parsed.split, label=label)


def read(path: str | Path, split: str | None = None, *, label: str | None = None) -> Dataset:
    """A data set from files: .npz, .csv, a published set's own layout, VERONA's, or pictures.

    `split` chooses one where the files hold several; without it, the test split if there is one.
    `label` names the column of a CSV file that holds the label.
    """
    path = Path(path)
    if label is not None and path.suffix.lower() != ".csv":
        raise DataError(f"{path}: has no columns with names, so label '{label}' cannot be chosen")
    _check_exists(path)
    if path.suffix.lower() == ".npz":
        images, labels, stored_split = read_npz(path, split)
        return from_arrays(images, labels, name=path.name, split=stored_split)
    if path.suffix.lower() == ".csv":
        _refuse_split(path, split)
        table = read_csv(path, label)
        return from_arrays(
            table.values, table.labels, name=path.name, features=table.names, notes=table.notes
        )
    if is_verona(path):
        _refuse_split(path, split)
        tensors, labels, numbers = read_verona(path)
        return Dataset(tensors, labels, name=path.resolve().name, indices=numbers)
    if path.is_dir() or path.name.lower().endswith(ARCHIVE_SUFFIXES):
        published = _read_layout(path, split)
        return _read_pictures(path, split) if published is None else published
    raise DataError(
        f"{path}: expected is a .npz or .csv file, a folder, or an archive of a published set"
    )


def _check_exists(path: Path) -> None:
    if not exists(path):
        names = ", ".join(dataset_names())
        meant = did_you_mean(str(path), dataset_names())
        raise DataError(
            f"data '{path}' is neither a data set ({names}) nor a file or folder{meant}"
        )


def _read_layout(path: Path, split: str | None) -> Dataset | None:
    """A published set in its official layout; None if the files are something else."""
    with open_tree(path) as tree:
        layout = recognise(tree, known_layouts())
        if layout is None:
            return None
        have = layout.splits(tree)
        chosen = split or ("test" if "test" in have else have[0])
        if chosen not in have:
            raise DataError(f"{path}: has {' and '.join(have)}, not '{split}'")
        content = layout.read(tree, chosen)
    labels = content.labels.astype(np.int64)
    return Dataset(Stack(content.images, 255.0), labels, name=path.name, split=chosen)


def _read_pictures(path: Path, split: str | None) -> Dataset:
    """One folder for each class, below the subfolder that `split` names, if there is one: as in
    folder/train/3/x.png."""
    root = path
    if split is not None:
        root = path / split
        if not root.is_dir():
            raise DataError(f"{path}: has no subfolder '{split}'")
    if not root.is_dir():
        raise DataError(f"{path}: holds no data set that radii knows; unpack pictures to a folder")
    images, known, notes = read_folder(root)
    return Dataset(
        images,
        known.labels,
        name=path.name,
        split=split,
        classes=known.classes,
        assumes_order=known.is_assumed,
        notes=notes,
    )


def _refuse_split(path: Path, split: str | None) -> None:
    if split is not None:
        what = "a folder of VERONA's images" if path.is_dir() else "a .csv file"
        raise DataError(f"{path}: {what} has no splits, so '{split}' cannot be chosen")


# Data as people have it in Python: a data set, a spec, arrays, or pairs of input and label.


def as_dataset(data: Any, *, name: str = "arrays") -> Dataset:
    """The data set that was given, in one of these forms.

    A `Dataset`; a spec or path as the command line takes it (`mnist:test[0:100]`, `images.npz`);
    a pair (inputs, labels) of arrays, tensors or lists; anything with a length whose items are
    pairs of an input and a label, such as a torch data set; or a torch `DataLoader`, which gives
    the inputs of its data set in the order of that, however it shuffles or batches.
    """
    if isinstance(data, Dataset):
        return data
    if isinstance(data, str | Path):
        return load_spec(str(data))
    if isinstance(data, tuple | list) and len(data) == 2 and not all(map(_is_pair, data)):
        return from_arrays(_as_array(data[0]), _as_array(data[1]), name=name)
    if all(hasattr(data, part) for part in ("dataset", "sampler", "collate_fn")):
        return _from_loader(data, name)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not hasattr(data, "shape"):
        return _from_pairs((data[place] for place in range(len(data))), name)
    raise DataError(
        f"data of type {type(data).__name__} is not a data set, a spec such as 'mnist:test[0:100]',"
        " a pair (inputs, labels), a sequence of such pairs, or a DataLoader"
    )


def _from_pairs(pairs: Iterable[Any], name: str) -> Dataset:
    try:
        inputs, labels = zip(
            *((_as_array(image), _as_array(label)) for image, label in pairs), strict=True
        )
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise DataError(
            f"{name}: its items are not all pairs of an input and a label ({error})"
        ) from None
    return from_arrays(_stacked(inputs, name), _stacked(labels, f"{name}: labels"), name=name)


def _stacked(arrays: Sequence[npt.NDArray[Any]], name: str) -> npt.NDArray[Any]:
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise DataError(f"{name}: inputs of different shapes {sorted(shapes)}")
    return np.stack(arrays)


def _from_loader(loader: Any, name: str) -> Dataset:
    """The inputs of a loader's data set, in the order of that, as its `collate_fn` makes them.

    However often it shuffles, an input so has one number. Where it takes some more than once, or
    has no order to go by, there is a DataError.
    """
    source, sampler, size = loader.dataset, loader.sampler, loader.batch_size
    kind = type(sampler).__name__
    is_whole = kind == "RandomSampler" and not sampler.replacement and len(sampler) == len(source)
    if kind == "SubsetRandomSampler":
        places = sorted(map(int, sampler.indices))
    elif (kind == "SequentialSampler" or is_whole) and not (size is None and loader.batch_sampler):
        places = list(range(len(source)))
    else:
        kind = type(loader.batch_sampler).__name__ if kind == "SequentialSampler" else kind
        raise DataError(
            f"{name}: a DataLoader with a {kind} has no fixed inputs; hand in its data set, or a "
            "torch Subset of it"
        )
    if size is None:
        return _from_pairs((loader.collate_fn(source[place]) for place in places), name)
    batches = [
        loader.collate_fn([source[place] for place in places[start : start + size]])
        for start in range(0, len(places), size)
    ]
    try:
        inputs, labels = zip(*((_as_array(x), _as_array(y)) for x, y in batches), strict=True)
        return from_arrays(np.concatenate(inputs), np.concatenate(labels), name=name)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{name}: its batches are not all pairs of inputs and labels ({error})"
        ) from None


def _is_pair(item: Any) -> bool:
    """Whether it is one input with its label, not all inputs or all labels."""
    is_two = isinstance(item, tuple | list) and len(item) == 2
    return is_two and np.ndim(_as_array(item[1])) == 0 < np.ndim(_as_array(item[0]))


def _as_array(values: Any) -> npt.NDArray[Any]:
    """A tensor may need to be taken off its graph and its device first."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":  # which numpy does not have
            values = values.float()
    return np.asarray(values)


# The embedded data set: 1797 handwritten digits of 8x8 pixels.
#
# Source: the test set of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak,
# 1998, UCI Machine Learning Repository, licence CC BY 4.0), in the order in which scikit-learn
# ships it (BSD-3-Clause). A pixel counts the inked ones of a 4x4 block, 0 to 16, and is divided by
# 16. `scripts/embed_digits.py` makes the file.
#
# The first 1297 images are `train`, the last 500 are `test`. Nothing is shuffled, because
# neighbours in the file tend to come from the same writer, and shuffling would put a writer on both
# sides.


DIGITS = "digits"
DIGITS_SPLITS = {"train": slice(0, 1297), "test": slice(1297, 1797)}
LARGEST_PIXEL = 16.0


def _load_digits(split: str) -> Dataset:
    """The embedded digits; images in [0, 1] of shape (1, 8, 8)."""
    if split not in DIGITS_SPLITS:
        raise DataError(f"data set '{DIGITS}' has splits train and test, not '{split}'")
    with (
        resource_files("radii.datasets").joinpath("digits.npz").open("rb") as stream,
        np.load(stream, allow_pickle=False) as arrays,
    ):
        images, labels = (
            arrays["images"][DIGITS_SPLITS[split]],
            arrays["labels"][DIGITS_SPLITS[split]],
        )
    return Dataset(
        Stack(images[:, None], LARGEST_PIXEL),
        labels.astype(np.int64),
        name=DIGITS,
        split=split,
        classes=tuple("0123456789"),
    )
