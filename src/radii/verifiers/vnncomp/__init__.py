"""Any tool that speaks the protocol of VNN-COMP, as a verifier."""

from __future__ import annotations

from radii.verifiers.vnncomp.verifier import VnnComp

__all__ = ["VnnComp"]
