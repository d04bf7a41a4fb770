"""One certificate at a time: does it claim what the store says, and does the checker accept it?

The proof itself is checked by `radii_check`, which shares no code with radii. What is done here is
the book-keeping that it cannot know: whether the certificate is the one that a result names, and
whether its claim is the statement that the result makes. This runs in processes of their own, so
nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.errors import InputError, MissingExtra
from radii.problem import Arithmetic, CertificateCheck, CheckOutcome, Instance, SoftmaxRequirement
from radii.processes import memory_share
from radii.store import CertifiedStatement, Store, content_hash

if TYPE_CHECKING:
    from radii_check import Certificate

CHECK_BYTES = 2 << 30
"""Of memory that a check may take."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A network as checkers read it: ONNX, with the normalisation in it."""

    name: str
    content: bytes
    outputs_are_probabilities: bool = False


def check_memory(jobs: int) -> int:
    """Bytes that a check may take if as many run side by side."""
    share = memory_share(max(1, jobs))
    return CHECK_BYTES if share is None else min(CHECK_BYTES, share)


def checker_name() -> str:
    """The name and version of the checker."""
    import radii_check

    return f"radii_check {radii_check.__version__}"


def check_arithmetic(exact: bool) -> None:
    """A MissingExtra if exact numbers are asked for and not there."""
    if exact:
        try:
            import flint  # noqa: F401 (only whether it is there)
        except ImportError:
            raise MissingExtra("python-flint", "exact", "--exact") from None


def checked(
    content: bytes, model: bytes, *, exact: bool, memory_bytes: int = CHECK_BYTES
) -> CertificateCheck:
    """What the checker says of a certificate and the network that it is about.

    A CertificateError of it is raised: then there is no certificate, or another network's.
    """
    import radii_check

    report = radii_check.check(content, model, exact=exact, memory_bytes=memory_bytes)
    margin = report.smallest_margin
    return CertificateCheck(
        checker=checker_name(),
        checked_at=_now(),
        outcome=CheckOutcome(report.outcome),
        reason=report.reason,
        numbers=_numbers(exact),
        nodes=report.nodes,
        lemmas=report.lemmas,
        margin=margin if np.isfinite(margin) else None,
        seconds=report.seconds,
    )


def refusal(reason: str, *, exact: bool) -> CertificateCheck:
    """A certificate that does not show its claim, whatever its steps are."""
    return _without_steps(CheckOutcome.REFUSED, reason, exact)


def unreadable(reason: str, *, exact: bool) -> CertificateCheck:
    """A certificate of which the checker cannot tell, or whose check did not come to its end."""
    return _without_steps(CheckOutcome.UNREADABLE, reason, exact)


def failed_checker(error: Exception, *, exact: bool) -> CertificateCheck:
    """Whatever a hostile certificate leads to, it is not accepted."""
    first = next(iter(str(error).splitlines()), "")
    return unreadable(f"the checker failed on it: {type(error).__name__}: {first}", exact=exact)


def _without_steps(outcome: CheckOutcome, reason: str, exact: bool) -> CertificateCheck:
    return CertificateCheck(checker_name(), _now(), outcome, reason, _numbers(exact))


def serve_checks(
    directory: str, models: Mapping[str, ModelFile], exact: bool, memory_bytes: int
) -> Callable[[CertifiedStatement], CertificateCheck]:
    """What a process does that checks certificates of a store, whose networks are `models`."""
    store = Store.open(Path(directory))  # open as long as the process lives

    def check(statement: CertifiedStatement) -> CertificateCheck:
        instance = store.instance(statement.instance)
        content = store.certificate(statement.certificate)
        reason = _lost(statement, content)
        if reason is not None or content is None:
            return refusal(reason or "", exact=exact)
        if instance is None:
            return unreadable("no text says what its property is", exact=exact)
        model = models[instance.network]
        instance = replace(instance, outputs_are_probabilities=model.outputs_are_probabilities)
        return _of_instance(content, statement, instance, model, exact, memory_bytes)

    return check


def _lost(statement: CertifiedStatement, content: bytes | None) -> str | None:
    """Why a content is not the one that a result names; None if it is."""
    name = statement.certificate
    if content is None:
        return f"the certificate {name[:12]} is not in the store any more"
    held = content_hash(content)
    if held == name:
        return None
    return f"the certificate {name[:12]} has changed: what is kept in its place is {held[:12]}"


def _of_instance(
    content: bytes,
    statement: CertifiedStatement,
    instance: Instance,
    model: ModelFile,
    exact: bool,
    memory_bytes: int,
) -> CertificateCheck:
    import radii_check

    try:
        certificate = radii_check.read_certificate(content, memory_bytes)
        reason = claim_difference(certificate, instance, statement.eps, statement.arithmetic)
        if reason is not None:
            return refusal(reason, exact=exact)
        return checked(content, model.content, exact=exact, memory_bytes=memory_bytes)
    except radii_check.Unreadable as error:
        return unreadable(str(error), exact=exact)
    except (radii_check.CertificateError, InputError) as error:
        return refusal(f"the certificate cannot be used: {error}", exact=exact)
    except Exception as error:
        return failed_checker(error, exact=exact)


def claim_difference(
    certificate: Certificate, instance: Instance, eps: float, arithmetic: Arithmetic
) -> str | None:
    """Why a certificate does not claim that the instance is robust at eps; None if it does."""
    claim, arrays = certificate.claim, certificate.arrays
    if claim["norm"] != instance.norm.value:
        return f"its certificate is about {claim['norm']}, not {instance.norm.value}"
    if claim["eps"] != eps:
        return f"its certificate shows eps {claim['eps']!r}, not {eps!r}"
    if not np.array_equal(arrays["input"], np.ravel(instance.input).astype(np.float64)):
        return "its certificate is about another input"
    low, high = (np.ravel(side) for side in instance.domain.box(instance.input.shape))
    if not (np.all(arrays["low"] <= low) and np.all(high <= arrays["high"])):
        return "its certificate is about a smaller domain"
    if not _has_scale(arrays.get("scale"), instance):
        return "its certificate is about other scales of the features"
    if Arithmetic.parse(claim["arithmetic"]).strength < arithmetic.strength:
        return f"its certificate holds {Arithmetic.parse(claim['arithmetic']).scope} alone"
    if not _has_violations(certificate, instance):
        return "its certificate is about another property or class"
    return None


def _has_scale(stated: Any, instance: Instance) -> bool:
    if instance.features is None:
        return stated is None
    return stated is not None and np.array_equal(stated, np.ravel(instance.features.scale))


def _has_violations(certificate: Certificate, instance: Instance) -> bool:
    """Both exclude the same outputs: by the same bounds on probabilities, or by polyhedra."""
    requirement, outputs = instance.requirement, len(instance.outputs)
    is_about_shares = certificate.claim["requirement"]["kind"] == "probabilities"
    if isinstance(requirement, SoftmaxRequirement):
        bounds = [(bound.index, bound.level, bound.is_ceiling) for bound in requirement.bounds]
        return is_about_shares and certificate.bounds(outputs) == bounds
    if is_about_shares:
        return False
    excluded = requirement.violations
    stated = certificate.violations(outputs)
    return (
        excluded is not None
        and len(excluded) == len(stated)
        and all(
            np.array_equal(matrix, each.matrix) and np.array_equal(offset, each.offset)
            for each, (matrix, offset) in zip(excluded, stated, strict=True)
        )
    )


def _numbers(exact: bool) -> str:
    return "exact" if exact else "float64"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
