"""Changes that were measured, kept in a file: one line an input, written as it is finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self, TextIO

from radii.errors import ExperimentError, StoreError
from radii.global_robustness.changes import Change
from radii.verdicts import Arithmetic

__all__ = ["ChangeRecords"]

FILE_NAME = "changes.jsonl"


class ChangeRecords:
    """What is known already, by the key of the instance. Without a directory nothing is kept."""

    def __init__(self, directory: Path | None, identity: dict[str, Any]) -> None:
        self.known: dict[str, Change] = {}
        self._stream: TextIO | None = None
        if directory is None:
            return
        path = directory / FILE_NAME
        try:
            directory.mkdir(parents=True, exist_ok=True)
            text = path.read_text("utf-8") if path.exists() else ""
            whole = text[: text.rfind("\n") + 1]
            if whole != text:  # the line that was being written when a run was ended
                path.write_text(whole, "utf-8")
            self._read(path, whole.splitlines(), identity)
            self._stream = path.open("a", encoding="utf-8")
            if not whole:
                self._write(identity)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not a text file"
            raise StoreError(f"{path}: cannot be used ({reason})") from None

    def _read(self, path: Path, lines: list[str], identity: dict[str, Any]) -> None:
        for number, line in enumerate(lines, 1):
            try:
                told = json.loads(line)
                if number > 1:
                    upper = float("inf") if told["upper"] is None else float(told["upper"])
                    self.known[told["key"]] = Change(float(told["lower"]), upper)
            except (ValueError, KeyError, TypeError):
                raise StoreError(f"{path}: line {number} is not a measured change") from None
            if number == 1:
                _check_same(path, told, json.loads(json.dumps(identity)))

    def add(self, key: str, change: Change) -> None:
        self.known[key] = change
        upper = None if change.upper == float("inf") else change.upper
        self._write({"key": key, "lower": change.lower, "upper": upper})

    def _write(self, told: dict[str, Any]) -> None:
        if self._stream is not None:
            self._stream.write(json.dumps(told) + "\n")
            self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._stream is not None:
            self._stream.close()


def _check_same(path: Path, was: dict[str, Any], now: dict[str, Any]) -> None:
    """An ExperimentError if a file is of another measurement, in words."""
    if "arithmetic" not in was:  # from before it was told: what replaying adds was sampled
        is_proven = was.get("by") != "attack" or was.get("within") is not None
        was = {**was, "arithmetic": "real" if is_proven else None}
    different = [name for name in now if was.get(name) != now[name]]
    if different == ["arithmetic"]:
        raise ExperimentError(
            f"{path}: its proofs hold {Arithmetic.parse(was['arithmetic']).scope}: go on with "
            f"--arithmetic {was['arithmetic']}, or choose another --out"
        )
    if was != now:
        raise ExperimentError(
            f"{path} holds another measurement ({', '.join(different)}); choose another --out"
        )
