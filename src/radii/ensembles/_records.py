"""The facts about an ensemble in a directory: kept as they are found, and read for reports."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np

from radii.ensembles._ensemble import Ensemble, Fooling, Point, full_set, is_within, members, set_of
from radii.ensembles._facts import EnsembleResults, Facts, Play
from radii.ensembles._game import DeterministicAttack
from radii.ensembles._proofs import JointResult
from radii.problem import Arithmetic, Norm, Verdict
from radii.store import EnsembleStore, explaining_damage


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
        identity = {
            "list of networks": json.dumps([network.fingerprint for network in ensemble.networks]),
            "selection of points": _digest(points),
            "norm": norm.value,
            "domain": ensemble.domain.key(),
            "arithmetic": str(arithmetic),
        }
        networks = [{"name": name} for name in ensemble.names]
        rows = [_point_columns(point) for point in points]
        return cls(EnsembleStore.create_or_open(directory, identity, networks, rows))

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
        attack = [
            [str(each.probability), [members(mask) for mask in each.sets]] for each in play.attack
        ]
        columns = {
            "eps": play.eps,
            "lower": str(lower),
            "upper": str(upper),
            "attack": json.dumps(attack),
            "defence": json.dumps([str(weight) for weight in play.defence]),
        }
        self._store.write(("plays", columns))

    def keep_fooling(self, place: int, fooling: Fooling) -> None:
        self._store.write(("foolings", _fooling_columns(place, fooling)))

    def keep_finding(self, place: int, finding: JointResult) -> None:
        """An answer, and the input that it brought, which is a fooling of its own; or nothing."""
        columns = {
            "point": place,
            "classifiers": json.dumps(members(finding.classifiers)),
            "eps": finding.eps,
            "verdict": finding.verdict.value,
            "verifier": finding.verifier,
            "version": finding.version,
            "seconds": finding.seconds,
            "margin": finding.margin,
            "message": finding.message,
            "arithmetic": None if finding.arithmetic is None else str(finding.arithmetic),
        }
        brought = [] if finding.fooling is None else [_fooling_columns(place, finding.fooling)]
        self._store.write(*(("foolings", each) for each in brought), ("findings", columns))

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def read_ensemble_results(directory: Path) -> EnsembleResults:
    """All that a directory keeps; a StoreError if a run is writing there or it
    holds no ensemble."""
    with EnsembleStore.open(directory) as store, explaining_damage(directory):
        identity = store.identity()
        points = tuple(map(_point, store.rows("points")))
        results = EnsembleResults(
            tuple(row["name"] for row in store.rows("networks")),
            points,
            Norm(identity["norm"]),
            identity["domain"],
            tuple(_facts(store, points)),
            _plays(store),
            directory,
            Arithmetic.parse(identity["arithmetic"]),
        )
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
        for row in store.rows("foolings"):
            like = points[row["point"]].input
            perturbed = np.frombuffer(row["input"], like.dtype).reshape(like.shape)
            fooled = set_of(json.loads(row["fooled"]))
            fooling = Fooling(fooled, float(row["distance"]), perturbed)
            known[row["point"]].foolings.append(fooling)
        for row in store.rows("findings"):
            known[row["point"]].findings.append(_finding(row))
    return known


def _finding(row: Mapping[str, Any]) -> JointResult:
    arithmetic = row["arithmetic"]
    return JointResult(
        classifiers=set_of(json.loads(row["classifiers"])),
        eps=float(row["eps"]),
        verdict=Verdict(row["verdict"]),
        verifier=row["verifier"],
        version=row["version"],
        seconds=row["seconds"],
        margin=row["margin"],
        message=row["message"],
        arithmetic=None if arithmetic is None else Arithmetic.parse(arithmetic),
    )


def _plays(store: EnsembleStore) -> tuple[Play, ...]:
    with explaining_damage(store.directory):
        return tuple(map(_play, store.rows("plays")))


def _play(row: Mapping[str, Any]) -> Play:
    attack = (
        DeterministicAttack(Fraction(probability), tuple(map(set_of, sets)))
        for probability, sets in json.loads(row["attack"])
    )
    defence = tuple(map(Fraction, json.loads(row["defence"])))
    return Play(float(row["eps"]), tuple(attack), defence)


def _point(row: Mapping[str, Any]) -> Point:
    image = np.frombuffer(row["input"], np.dtype(row["type"]))
    return Point(row["number"], row["label"], image.reshape(json.loads(row["shape"])))


def _point_columns(point: Point) -> dict[str, object]:
    return {
        "number": point.index,
        "label": point.label,
        "type": point.input.dtype.str,
        "shape": json.dumps(point.input.shape),
        "input": np.ascontiguousarray(point.input).tobytes(),
    }


def _fooling_columns(place: int, fooling: Fooling) -> dict[str, object]:
    return {
        "point": place,
        "fooled": json.dumps(members(fooling.fooled)),
        "distance": fooling.distance,
        "input": np.ascontiguousarray(fooling.input).tobytes(),
    }


def _digest(points: Sequence[Point]) -> str:
    digest = hashlib.sha256()
    for point in points:
        digest.update(f"{point.index} {point.label} {point.input.dtype}".encode())
        digest.update(np.ascontiguousarray(point.input).tobytes())
    return digest.hexdigest()
