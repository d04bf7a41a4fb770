"""Running a model on ONNX Runtime: the reference that every witness is checked against."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.errors import NetworkError

__all__ = ["Replay", "replay_version"]


@cache
def replay_version() -> str:
    """The engine that replays, with its version."""
    from importlib.metadata import version

    return f"onnxruntime {version('onnxruntime')}"


class Replay:
    """A session on one thread of the CPU, fed one input at a time: the same answer every time."""

    def __init__(self, model: bytes, name: str) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self._name = name
        try:
            self._session: Any = onnxruntime.InferenceSession(
                model, options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
        except Exception as error:
            raise NetworkError(
                f"{name}: {replay_version()} cannot load it: {_reason(error)}"
            ) from None
        self._input = self._session.get_inputs()[0].name

    def run(self, inputs: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """The outputs, flattened, of inputs stacked along the first axis."""
        outputs = []
        for x in inputs:
            try:
                (y,) = self._session.run(None, {self._input: x})
            except Exception as error:
                raise NetworkError(
                    f"{self._name}: {replay_version()} cannot run it: {_reason(error)}"
                ) from None
            outputs.append(np.ravel(y))
        return np.stack(outputs)


def _reason(error: Exception) -> str:
    """What the runtime says, without its error codes, source paths and signatures."""
    text = " ".join(str(error).split())
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text)
    return re.sub(r"/onnxruntime_src/\S+ .*\) (?:const )?", "", text)
