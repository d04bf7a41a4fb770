"""Checks certificates of robustness proofs, with numpy and onnx alone: see docs/certificates.md."""

from radii_check._check import CheckReport, check
from radii_check._format import Certificate, CertificateError, read_certificate

__all__ = ["Certificate", "CertificateError", "CheckReport", "check", "read_certificate"]
