"""What a store says it was made for: settings as a typed record, read from JSON in one place."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self

import numpy as np

from radii.problem import Arithmetic, Domain, Features, Grid, Norm, Shard


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is no whole number")
    return value


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def _texts_by_name(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is no mapping")
    return {_text(name): _text(text) for name, text in value.items()}


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is no list")
    return tuple(map(_text, value))


def _features(value: object) -> Features:
    try:
        return Features.from_json(value)  # type: ignore[arg-type]
    except (TypeError, KeyError, AttributeError):
        raise ValueError(f"{value!r} are no features") from None


def _read_by(read: Callable[[Any], Any], key: str = "") -> dict[str, Any]:
    """The metadata of a field: how it is read, and its key in JSON where that is another name."""
    return {"read": read, "key": key}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSettings:
    """How a run was measured, as its store describes it; None where it does not say.

    `source` is the text that names the inputs, `split` train or test. `networks` maps names to
    fingerprints, `domains` are the keys of their input domains in the same order, and `selection`
    is a digest of the instances. `features` say how far each value moves; `feature_names` are those
    of the data where nothing else is known of them; `class_names` are the data's words for labels
    0, 1, .... Times are in seconds. Of a shard, `whole` is the digest of the selection of which it
    is a part. Stores of older versions lack some fields; what a newer version has added is left
    out.
    """

    source: str | None = field(default=None, metadata=_read_by(_text))
    split: str | None = field(default=None, metadata=_read_by(_text))
    property: str | None = field(default=None, metadata=_read_by(_text))
    norm: Norm | None = field(default=None, metadata=_read_by(Norm))
    grid: Grid | None = field(default=None, metadata=_read_by(lambda v: Grid.parse(_text(v))))
    search: str | None = field(default=None, metadata=_read_by(_text))
    verifier: str | None = field(default=None, metadata=_read_by(_text))
    attack: str | None = field(default=None, metadata=_read_by(_text))
    arithmetic: Arithmetic | None = field(
        default=None, metadata=_read_by(lambda v: Arithmetic.parse(_text(v)))
    )
    k: int | None = field(default=None, metadata=_read_by(_whole))
    cuts: str | None = field(default=None, metadata=_read_by(_text))
    timeout: float | None = field(default=None, metadata=_read_by(_number))
    budget: float | None = field(default=None, metadata=_read_by(_number))
    seed: int | None = field(default=None, metadata=_read_by(_whole))
    networks: Mapping[str, str] = field(default_factory=dict, metadata=_read_by(_texts_by_name))
    domains: tuple[str, ...] = field(default=(), metadata=_read_by(_texts, "domain"))
    selection: str | None = field(default=None, metadata=_read_by(_text, "data"))
    features: Features | None = field(default=None, metadata=_read_by(_features))
    shard: Shard | None = field(default=None, metadata=_read_by(lambda v: Shard.parse(_text(v))))
    whole: str | None = field(default=None, metadata=_read_by(_text))
    feature_names: tuple[str, ...] = field(default=(), metadata=_read_by(_texts))
    class_names: tuple[str, ...] = field(default=(), metadata=_read_by(_texts))

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """What a store holds; a ValueError or an InputError if a value cannot be one."""
        values = {}
        for each in dataclasses.fields(cls):
            value = stored.get(each.metadata["key"] or each.name)
            if value is not None:
                values[each.name] = each.metadata["read"](value)
        return cls(**values)

    def text_of(self, name: str) -> str | int | float | None:
        """A setting as JSON and tables show it."""
        value = getattr(self, name)
        return value if value is None or isinstance(value, str | int | float) else str(value)

    def class_text(self, label: int | None) -> str:
        """What the data call a class; its number where they do not say."""
        is_named = label is not None and 0 <= label < len(self.class_names)
        return self.class_names[label] if is_named and label is not None else str(label)

    def domain_of_network(self) -> dict[str, Domain]:
        """The input domain of each network, by fingerprint; none where the store has none."""
        if not self.networks or not self.domains:
            return {}
        pairs = zip(self.networks.values(), self.domains, strict=True)
        return {fingerprint: _domain(key) for fingerprint, key in pairs}


@lru_cache(maxsize=64)
def _domain(key: str) -> Domain:
    """The domain of `Domain.key`."""
    low, _, high = key.partition(":")
    return Domain(np.array(json.loads(low)), np.array(json.loads(high)))
