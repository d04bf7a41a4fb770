"""Checks certificates of robustness proofs, with numpy and onnx alone.

README.md in this folder walks through one certificate by hand; docs/certificates.md is the format.
"""

from radii_check._check import CheckReport, check
from radii_check._errors import CertificateError, Unreadable
from radii_check._format import Certificate, read_certificate

__version__ = "1.2"

__all__ = [
    "Certificate",
    "CertificateError",
    "CheckReport",
    "Unreadable",
    "check",
    "read_certificate",
]
