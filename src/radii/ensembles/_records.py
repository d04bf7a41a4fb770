"""The facts about an ensemble in a directory: kept as they are found, and read for reports."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Self

import numpy as np

from radii.ensembles._ensemble import Ensemble, Fooling, Point, full_set, is_within, members, set_of
from radii.ensembles._facts import EnsembleResults, Facts, Play
from radii.ensembles._game import DeterministicAttack
from radii.ensembles._proofs import JointResult
from radii.problem import Arithmetic, Norm, Verdict
from radii.store import (
    EnsembleIdentity,
    EnsembleStore,
    StoredFinding,
    StoredFooling,
    StoredPlay,
    StoredPoint,
    explaining_damage,
)


class Records:
    """The facts of one ensemble at some points in one norm. Use as a context manager."""

    def __init__(self, store: EnsembleStore) -> None:
        self._store = store
        self.directory = store.directory

    @classmethod
    def create_or_open(
        cls,
        directory: Path,
        ensemble: Ensemble,
        points: Sequence[Point],
        norm: Norm,
        arithmetic: Arithmetic,
    ) -> Self:
        """Open for writing; a StoreError if the directory is about something else, or in use."""
        identity = EnsembleIdentity(
            fingerprints=tuple(network.fingerprint for network in ensemble.networks),
            selection=_digest(points),
            norm=norm,
            domain=ensemble.domain.key(),
            arithmetic=arithmetic,
        )
        stored = [StoredPoint(point.index, point.label, point.input) for point in points]
        return cls(EnsembleStore.create_or_open(directory, identity, ensemble.names, stored))

    def facts(self, points: Sequence[Point]) -> list[Facts]:
        """What is known of each point; what nobody answered is left out, to be asked again."""
        known = _facts(self._store, points)
        for facts in known:
            facts.findings = [f for f in facts.findings if f.verdict is not Verdict.ERROR]
        return known

    def plays(self) -> tuple[Play, ...]:
        """The best plays, by increasing eps."""
        return _plays(self._store)

    def keep_play(self, play: Play, lower: Fraction, upper: Fraction) -> None:
        """Whatever was kept of this eps came from fewer facts."""
        attack = [(each.probability, [members(mask) for mask in each.sets]) for each in play.attack]
        self._store.keep_play(StoredPlay(play.eps, attack, play.defence), lower, upper)

    def keep_fooling(self, place: int, fooling: Fooling) -> None:
        self._store.keep_fooling(_stored_fooling(place, fooling))

    def keep_finding(self, place: int, finding: JointResult) -> None:
        """An answer; the input that it brought is a fooling of its own."""
        stored = StoredFinding(
            point=place,
            classifiers=members(finding.classifiers),
            eps=finding.eps,
            verdict=finding.verdict,
            verifier=finding.verifier,
            version=finding.version,
            seconds=finding.seconds,
            margin=finding.margin,
            message=finding.message,
            arithmetic=finding.arithmetic,
        )
        fooling = None if finding.fooling is None else _stored_fooling(place, finding.fooling)
        self._store.keep_finding(stored, fooling)

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def read_ensemble_results(directory: Path) -> EnsembleResults:
    """All that a directory keeps; a StoreError if a run is writing there, or it is none of ours."""
    with EnsembleStore.open(directory) as store:
        identity = store.identity()
        points = tuple(Point(each.number, each.label, each.input) for each in store.points())
        results = EnsembleResults(
            tuple(store.names()),
            points,
            identity.norm,
            identity.domain,
            tuple(_facts(store, points)),
            _plays(store),
            directory,
            identity.arithmetic,
        )
    with explaining_damage(directory):
        _check(results)
    return results


def _check(results: EnsembleResults) -> None:
    """Plays are of these points and networks, and mixes are mixes: else a value would not be one.

    Raises a ValueError that says what is wrong.
    """
    if not results.names or not results.points:
        raise ValueError("it has no networks or no points")
    everyone = full_set(len(results.names))
    sets = [each.fooled for facts in results.facts for each in facts.foolings]
    sets += [each.classifiers for facts in results.facts for each in facts.findings]
    for play in results.plays:
        sets += [mask for each in play.attack for mask in each.sets]
        for mix in ([each.probability for each in play.attack], play.defence):
            if min(mix, default=-1) < 0 or sum(mix) != 1:
                raise ValueError(f"a mix at eps {play.eps:g} does not add up to 1")
        if len(play.defence) != len(results.names):
            raise ValueError(f"the defence at eps {play.eps:g} is of other networks")
        if any(len(each.sets) != len(results.points) for each in play.attack):
            raise ValueError(f"an attack at eps {play.eps:g} is of other points")
    if not all(is_within(mask, everyone) for mask in sets):
        raise ValueError("a set has networks that the ensemble does not have")


def _facts(store: EnsembleStore, points: Sequence[Point]) -> list[Facts]:
    """What is known of each point."""
    known = [Facts() for _ in points]
    with explaining_damage(store.directory):
        for fooling in store.foolings([point.input for point in points]):
            known[fooling.point].foolings.append(
                Fooling(set_of(fooling.fooled), fooling.distance, fooling.input)
            )
        for finding in store.findings():
            known[finding.point].findings.append(_joint_result(finding))
    return known


def _joint_result(finding: StoredFinding) -> JointResult:
    return JointResult(
        classifiers=set_of(finding.classifiers),
        eps=finding.eps,
        verdict=finding.verdict,
        verifier=finding.verifier,
        version=finding.version,
        seconds=finding.seconds,
        margin=finding.margin,
        message=finding.message,
        arithmetic=finding.arithmetic,
    )


def _plays(store: EnsembleStore) -> tuple[Play, ...]:
    with explaining_damage(store.directory):
        return tuple(
            Play(
                each.eps,
                tuple(
                    DeterministicAttack(probability, tuple(map(set_of, sets)))
                    for probability, sets in each.attack
                ),
                tuple(each.defence),
            )
            for each in store.plays()
        )


def _stored_fooling(place: int, fooling: Fooling) -> StoredFooling:
    return StoredFooling(place, members(fooling.fooled), fooling.distance, fooling.input)


def _digest(points: Sequence[Point]) -> str:
    digest = hashlib.sha256()
    for point in points:
        digest.update(f"{point.index} {point.label} {point.input.dtype}".encode())
        digest.update(np.ascontiguousarray(point.input).tobytes())
    return digest.hexdigest()
