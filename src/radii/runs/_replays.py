"""What a store says of its inputs and counterexamples, compared with replays on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from radii.errors import InputError
from radii.networks import Network
from radii.problem import Array, Instance, Query, Witness, check_witness
from radii.runs._knowledge import output_difference
from radii.store import Record


class EvidenceKind(StrEnum):
    """What is compared with something that the store cannot change."""

    PROOF = "proof"
    """A lower bound, against its certificate."""
    WITNESS = "witness"
    """An upper bound, against a replay of the counterexample."""
    OUTPUTS = "outputs"
    """What the network gives for an input, against a replay."""
    DATA = "data"
    """An input and its label, against the data."""
    QUESTION = "question"
    """What was asked, against what is stored as its answer."""


@dataclass(frozen=True, slots=True)
class EvidencePlace:
    """Whose evidence it is, and at which eps or distance; `by` gave it.

    What is said of a whole network has no input, and what is said of an input no eps.
    """

    network: str
    input: int | None = None
    target: int | None = None
    eps: float | None = None
    by: str = ""

    @classmethod
    def of(cls, record: Record, eps: float | None = None, by: str = "") -> EvidencePlace:
        facts = record.facts
        return cls(facts.network, facts.input, facts.target, eps, by)

    def __str__(self) -> str:
        target = "" if self.target is None else f" against class {self.target}"
        return self.network if self.input is None else f"{self.network}, input {self.input}{target}"


@dataclass(frozen=True, slots=True)
class RefusedEvidence:
    """Something that a store says and that does not hold, and why."""

    place: EvidencePlace
    kind: EvidenceKind
    reason: str

    def __str__(self) -> str:
        words = {EvidenceKind.PROOF: ", proof at eps", EvidenceKind.WITNESS: ", counterexample at"}
        eps = self.place.eps
        where = "" if eps is None else f"{words.get(self.kind, ' at')} {eps:g}"
        return f"{self.place}{where}: {self.reason}"


class InstanceReplay:
    """Runs the inputs and counterexamples of one network again; equal inputs in turn only once."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._digest = ""
        self._outputs: Array | str = ""

    def refused(self, record: Record, instance: Instance | None) -> Iterator[RefusedEvidence]:
        """What does not hold of a record with its inputs.

        `instance` is None where no text stands for its property: its counterexamples are left out.
        """
        if record.digest != self._digest:
            self._digest, self._outputs = record.digest, self._replayed(record.input)
        reason = self._output_reason(record, instance)
        if reason is not None:
            yield RefusedEvidence(EvidencePlace.of(record), EvidenceKind.OUTPUTS, reason)
        for result in record.results if instance is not None else ():
            if result.witness is not None and instance is not None:
                reason = self._witness_reason(instance, result.witness)
                where = EvidencePlace.of(record, result.witness.distance, result.author)
                if reason is not None:
                    yield RefusedEvidence(where, EvidenceKind.WITNESS, reason)

    def _replayed(self, image: Array) -> Array | str:
        """The outputs for an input, or why it cannot be run."""
        if image.dtype != self._network.input_dtype:
            return (
                f"its input is of {image.dtype}, and the network takes {self._network.input_dtype}"
            )
        try:
            return np.asarray(self._network.replay(image[None])[0])
        except InputError as error:
            return str(error)

    def _output_reason(self, record: Record, instance: Instance | None) -> str | None:
        """Why the stored outputs, or what they say, are not those of the network; None if so."""
        outputs, facts, engine = self._outputs, record.facts, self._network.replayed_on
        if isinstance(outputs, str):
            return outputs
        if outputs.shape != record.outputs.shape:
            return f"it has {record.outputs.size} outputs, and the network gives {outputs.size}"
        if (predicted := int(np.argmax(outputs))) != facts.predicted:
            return f"{engine} gives class {predicted}, not {facts.predicted}"
        is_correct = bool(np.all(outputs[facts.label] > np.delete(outputs, facts.label)))
        if is_correct != facts.correct:
            words = "right" if is_correct else "wrong"
            return f"on {engine} its class is {words}, which the store says it is not"
        if (reason := self._difference(record.outputs, outputs)) is not None:
            return f"its outputs are {reason}"
        if instance is None or replace(instance, outputs=outputs).holds:
            return None
        is_counted = any(r.witness is not None and r.witness.distance == 0 for r in record.results)
        return None if is_counted else "the property fails at the input itself: its radius is 0"

    def _difference(self, stored: Array, outputs: Array) -> str | None:
        off = output_difference(stored, outputs)
        if off is None:
            return None
        return f"up to {off:.3g} away from those that {self._network.replayed_on} gives"

    def _witness_reason(self, instance: Instance, witness: Witness) -> str | None:
        """Why a stored witness does not replay to the bit, and as close as it says."""
        replayed = check_witness(
            self._network, Query(instance, witness.distance).specification, witness.input
        )
        if replayed is None:
            return f"it breaks nothing on {self._network.replayed_on}"
        if not np.array_equal(replayed.input, witness.input):
            return f"it lies further away than {witness.distance:g}"
        if replayed.predicted != witness.predicted:
            return (
                f"{self._network.replayed_on} gives class {replayed.predicted} for it, not "
                f"{witness.predicted}"
            )
        reason = self._difference(witness.outputs, replayed.outputs)
        return None if reason is None else f"its outputs are {reason}"
