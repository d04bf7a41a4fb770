"""How the inputs of a run were drawn, which decides what they say about all inputs."""

from __future__ import annotations

from enum import StrEnum

from radii.errors import DataError


class InputDraw(StrEnum):
    """`UNKNOWN` is also a whole file. The last three are drawn class by class, `STRATIFIED` in the
    proportions of the classes (rounded to whole images), the others equally many of each.
    """

    UNKNOWN = ""
    RANDOM = "random"
    ORDERED = "in order"
    STRATIFIED = "stratified"
    PER_CLASS = "per class"
    FIRST_PER_CLASS = "first per class"

    @property
    def is_by_class(self) -> bool:
        """Whether each class was drawn by itself: then classes are not as frequent as in life."""
        return self in (InputDraw.STRATIFIED, InputDraw.PER_CLASS, InputDraw.FIRST_PER_CLASS)

    @property
    def is_ordered(self) -> bool:
        """Whether inputs were taken in the order of their file, and not at random."""
        return self in (InputDraw.ORDERED, InputDraw.FIRST_PER_CLASS)

    @property
    def within_class(self) -> InputDraw:
        """What it is for the inputs of one class alone."""
        if not self.is_by_class:
            return self
        return InputDraw.ORDERED if self.is_ordered else InputDraw.RANDOM


STEP_DRAWS = {
    "slice": InputDraw.ORDERED,
    "indices": InputDraw.ORDERED,
    "first": InputDraw.ORDERED,
    "random": InputDraw.RANDOM,
    "stratified": InputDraw.STRATIFIED,
    "per-class": InputDraw.PER_CLASS,
    "class": InputDraw.UNKNOWN,  # the population is these classes, all of it
}


def draw_of(source: str | None) -> InputDraw:
    """The draw that the texts of a run's inputs describe, as in `mnist:test[random 100]`."""
    from radii.datasets import Spec

    if not source:
        return InputDraw.UNKNOWN
    try:
        specs = [Spec.parse(text) for text in source.split(" and ")]
    except DataError:  # data that were made in Python have any name
        return InputDraw.UNKNOWN
    draws = [
        InputDraw.FIRST_PER_CLASS
        if step.kind == "per-class" and step.seed is None
        else STEP_DRAWS[step.kind]
        for spec in specs
        for step in spec.steps
    ]
    return joined_draw(draws)


def joined_draw(draws: list[InputDraw]) -> InputDraw:
    """The draw of what was drawn in several ways, together or one after the other."""
    known = [draw for draw in draws if draw is not InputDraw.UNKNOWN]
    is_ordered = any(draw.is_ordered for draw in known)
    if known == [InputDraw.STRATIFIED]:
        return InputDraw.STRATIFIED
    if any(draw.is_by_class for draw in known):  # proportions are lost in joining
        return InputDraw.FIRST_PER_CLASS if is_ordered else InputDraw.PER_CLASS
    if is_ordered:
        return InputDraw.ORDERED
    return InputDraw.RANDOM if known else InputDraw.UNKNOWN
