"""One certificate at a time: does it claim what the store says, and does the checker accept it?

The proof itself is checked by `radii_check`, which shares no code with radii. What is done here is
the book-keeping that it cannot know: whether the certificate is the one that a result names, and
whether its claim is the statement that the result makes. This runs in processes of their own, so
nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from radii.errors import InputError, MissingExtra
from radii.problem import Arithmetic, CertificateCheck, CheckOutcome, Instance, SoftmaxRequirement
from radii.processes import ProcessPool, Request, StoppedCall, memory_share
from radii.store import CertifiedStatement, Store, content_hash

if TYPE_CHECKING:
    from radii_check import Certificate

T = TypeVar("T")

CHECK_BYTES = 2 << 30
"""Of memory that a check may take."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A network as checkers read it: ONNX, with the normalisation in it."""

    name: str
    content: bytes
    outputs_are_probabilities: bool = False


class OtherClaim(Exception):
    """A certificate is not about what it is to show, and why."""


@dataclass(frozen=True, slots=True)
class ProofChecker:
    """`radii_check` on exact numbers or on floats, with `memory_bytes` for each check."""

    exact: bool
    memory_bytes: int = CHECK_BYTES

    @classmethod
    def of(cls, exact: bool, jobs: int) -> Self:
        """For as many checks side by side.

        A MissingExtra if exact numbers are asked for and not there.
        """
        if exact:
            try:
                import flint  # noqa: F401 (only whether it is there)
            except ImportError:
                raise MissingExtra("python-flint", "exact", "--exact") from None
        return cls(exact, min(CHECK_BYTES, memory_share(max(1, jobs)) or CHECK_BYTES))

    @property
    def numbers(self) -> str:
        """In which it calculates."""
        return "exact" if self.exact else "float64"

    def check(self, content: bytes, model_of: Callable[[Certificate], bytes]) -> CertificateCheck:
        """What the checker says of a certificate and the network that it is about.

        `model_of` gives that network, or raises an OtherClaim. A CertificateError is raised where
        the content is not a certificate, or is one of another network. A hostile one that makes the
        checker fail in any other way is not accepted.
        """
        import radii_check

        try:
            model = model_of(radii_check.read_certificate(content, self.memory_bytes))
            report = radii_check.check(
                content, model, exact=self.exact, memory_bytes=self.memory_bytes
            )
        except radii_check.Unreadable as error:
            return self.unreadable(str(error))
        except (OtherClaim, radii_check.CertificateError, InputError):
            raise
        except Exception as error:
            first = next(iter(str(error).splitlines()), "")
            return self.unreadable(f"the checker failed on it: {type(error).__name__}: {first}")
        margin = report.smallest_margin if np.isfinite(report.smallest_margin) else None
        return replace(
            self._outcome(CheckOutcome(report.outcome), report.reason),
            nodes=report.nodes,
            lemmas=report.lemmas,
            margin=margin,
            seconds=report.seconds,
        )

    def refusal(self, reason: str) -> CertificateCheck:
        """A certificate that does not show its claim, whatever its steps are."""
        return self._outcome(CheckOutcome.REFUSED, reason)

    def unreadable(self, reason: str) -> CertificateCheck:
        """The checker cannot tell, or the check did not come to its end."""
        return self._outcome(CheckOutcome.UNREADABLE, reason)

    def _outcome(self, outcome: CheckOutcome, reason: str) -> CertificateCheck:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return CertificateCheck(checker_name(), now, outcome, reason, self.numbers)

    def answers(
        self,
        make: Callable[..., Callable[[T], Any]],
        arguments: tuple[object, ...],
        wanted: Sequence[T],
        jobs: int,
    ) -> Iterator[tuple[T, Any]]:
        """Each of those wanted with what `make(self, *arguments)` says of it, as they end.

        `jobs` 0: in this process. Of one whose process ended early it is an unreadable certificate.
        """
        with ProcessPool(make, self, *arguments, jobs=min(jobs, len(wanted))) as pool:
            for request, answer in pool.answers([Request((one,)) for one in wanted]):
                if isinstance(answer, StoppedCall):
                    answer = self.unreadable(f"its check ended early: {answer.message}")
                yield request.arguments[0], answer


def checker_name() -> str:
    """The name and version of the checker."""
    import radii_check

    return f"radii_check {radii_check.__version__}"


def serve_checks(
    checker: ProofChecker, directory: str, models: Mapping[str, ModelFile]
) -> Callable[[CertifiedStatement], CertificateCheck]:
    """What a process does that checks certificates of a store, whose networks are `models`."""
    import radii_check

    store = Store.open(Path(directory))  # open as long as the process lives

    def check(statement: CertifiedStatement) -> CertificateCheck:
        instance = store.instance(statement.instance)
        content = store.certificate(statement.certificate)
        name = statement.certificate[:12]
        if content is None:
            return checker.refusal(f"the certificate {name} is not in the store any more")
        if (actual := content_hash(content)) != statement.certificate:
            return checker.refusal(
                f"the certificate {name} has changed: what is kept in its place is {actual[:12]}"
            )
        if instance is None:
            return checker.unreadable("no text says what its property is")
        model = models[instance.network]
        asked = replace(instance, outputs_are_probabilities=model.outputs_are_probabilities)

        def model_of(certificate: Certificate) -> bytes:
            other = claim_difference(certificate, asked, statement.eps, statement.arithmetic)
            if other is not None:
                raise OtherClaim(other)
            return model.content

        try:
            return checker.check(content, model_of)
        except OtherClaim as error:
            return checker.refusal(str(error))
        except (radii_check.CertificateError, InputError) as error:
            return checker.refusal(f"the certificate cannot be used: {error}")

    return check


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
