"""Checks certificates of robustness proofs, with numpy and onnx alone: see docs/certificates.md."""

from radii_check._check import CheckReport, check
from radii_check._format import Certificate, CertificateError, Unreadable, read_certificate

__version__ = "1.1"

__all__ = [
    "Certificate",
    "CertificateError",
    "CheckReport",
    "Unreadable",
    "check",
    "read_certificate",
]
