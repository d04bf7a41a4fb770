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
from dataclasses import dataclass
from pathlib import Path

from radii.datasets._dataset import Dataset
from radii.errors import DataError

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
