"""Who may ask: whoever knows the token, at an address that is this machine's own.

The token is part of the address that `radii serve` prints. It is no cookie: a browser sends those
to every port of a machine, also to servers of other people.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import secrets
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

__all__ = ["Gate", "token_for"]

SECRET_BYTES = 32
TOKEN_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Gate:
    """Decides whether a request is answered. `host` is the name or address that is listened on."""

    token: str
    host: str

    def refusal(self, target: str, headers: Message) -> str:
        """Why a request is refused, in a sentence; empty if it is not."""
        host = headers.get("Host", "")
        if not self._is_own(host):
            return "This server does not answer under that name."
        origin = headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return "Another page may not ask this server."
        if not self._has_token(target, headers):
            return "The token is missing or wrong: open the address that radii serve prints."
        return ""

    def _is_own(self, host: str) -> bool:
        """A name of somebody else that leads here is an attack (DNS rebinding); a number is not."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in {"localhost", self.host.lower(), socket.gethostname().lower()}:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _has_token(self, target: str, headers: Message) -> bool:
        given = parse_qs(urlsplit(target).query).get("token", [])
        kind, _, carried = headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer":
            given.append(carried.strip())
        return any(hmac.compare_digest(one.encode(), self.token.encode()) for one in given)


def token_for(places: Sequence[Path]) -> str:
    """The same for the same directories, so that a page survives a restart of its server.

    It comes from a random secret that only this user can read. Where that cannot be kept, the
    token is new every time.
    """
    named = "\n".join(sorted(str(place.resolve()) for place in places))
    return hmac.new(_secret(), named.encode(), hashlib.sha256).hexdigest()[:TOKEN_CHARACTERS]


def _secret() -> bytes:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(state) / "radii" / "serve-secret"
    new = secrets.token_bytes(SECRET_BYTES)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(file, "wb") as stream:
                stream.write(new)
        found = path.lstat()
        kept = path.read_bytes()
        is_private = found.st_uid == os.getuid() and found.st_mode & 0o177 == 0
        if is_private and len(kept) == SECRET_BYTES:
            return kept
    return new
