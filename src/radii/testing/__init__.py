"""For tests: assertions about models, and conformance suites that plugins and operators pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["RobustnessFailure", "assert_robust"]

if TYPE_CHECKING:
    from radii.assertions import RobustnessFailure, assert_robust


def __getattr__(name: str) -> Any:
    """Assertions load what they need when they are asked for."""
    if name in __all__:
        from radii import assertions

        return getattr(assertions, name)
    raise AttributeError(f"module 'radii.testing' has no attribute '{name}'")
