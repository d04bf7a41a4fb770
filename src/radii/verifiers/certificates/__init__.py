"""Certificates: what is claimed and what shows it, as a file that `radii_check` reads.

The format is described in docs/certificates.md. Here it is written; whoever does not trust radii
reads and checks it with `radii_check`, which shares no code with it.
"""
