"""The devices that torch can compute on here."""

from __future__ import annotations

from radii.errors import SpecificationError

__all__ = ["check_device"]


def check_device(name: str) -> None:
    """A SpecificationError unless torch can compute on the device called `name`."""
    import torch

    try:
        is_real = torch.device(name).type != "meta"  # which has shapes, but no values
        torch.ones(1, device=name).add(1).cpu()
    except Exception:  # each back end raises its own kind when it is not there
        is_real = False
    if not is_real:
        raise SpecificationError(f"device '{name}' is not one of {', '.join(_devices())} here")


def _devices() -> list[str]:
    import torch

    found = torch.accelerator.current_accelerator(check_available=True)
    return ["cpu"] if found is None else ["cpu", found.type]
