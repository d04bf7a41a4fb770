"""Who may ask: whoever knows the token, at an address that is this machine's own.

The token is part of the address that `radii serve` prints. It is not a cookie: a browser sends
those to every port of a machine, also to servers of other people.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
import secrets
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs

SECRET_BYTES = 32
TOKEN_CHARACTERS = 40
MOST_PORT = 65535
# As browsers send it: a name or number, IPv6 in brackets, and a port. No user, no path.
_AUTHORITY = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9._-]*|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?",
    re.IGNORECASE | re.ASCII,
)
_ORIGIN = re.compile(r"https?://(?P<authority>.+)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Refusal:
    """How a request is refused: the status, and why in a sentence."""

    status: HTTPStatus
    reason: str


MALFORMED = Refusal(HTTPStatus.BAD_REQUEST, "This is not a request that a browser sends.")
FOREIGN_NAME = Refusal(HTTPStatus.FORBIDDEN, "This server does not answer under that name.")
FOREIGN_PAGE = Refusal(HTTPStatus.FORBIDDEN, "Another page may not ask this server.")
NO_TOKEN = Refusal(
    HTTPStatus.FORBIDDEN,
    "The token is missing or wrong: open the address that radii serve prints.",
)


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """What a request asks for."""

    path: str
    query: Mapping[str, Sequence[str]]

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """From a path of this server and its query; None for anything else."""
        path, _, query = text.partition("?")
        return cls(path, parse_qs(query)) if path.startswith("/") else None


@dataclass(frozen=True, slots=True)
class _Authority:
    """A name or number in lower case, IPv6 without its brackets, and the port if there is one."""

    name: str
    port: int | None

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """None unless `text` is a name or number and perhaps a port, and nothing else."""
        found = _AUTHORITY.fullmatch(text)
        if found is None or (found["port"] is not None and int(found["port"]) > MOST_PORT):
            return None
        name = found["name"].lower().strip("[]")
        if found["name"].startswith("[") and not _is_number(name):
            return None
        return cls(name, None if found["port"] is None else int(found["port"]))


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Gate:
    """Decides whether a request is answered. `host` is the name or address that is listened on."""

    token: str
    host: str

    def admit(self, text: str, headers: Message) -> RequestTarget | Refusal:
        """What a request asks for, if it may. Never raises, whatever is sent."""
        target = RequestTarget.parse(text)
        hosts = [value.strip(" \t") for value in headers.get_all("Host", [])]
        origins = [value.strip(" \t") for value in headers.get_all("Origin", [])]
        host = _Authority.parse(hosts[0]) if len(hosts) == 1 else None
        if target is None or host is None or len(origins) > 1:
            return MALFORMED
        if not self._is_own(host):
            return FOREIGN_NAME
        if not all(_is_same(origin, host) for origin in origins):
            return FOREIGN_PAGE
        return target if self._has_token(target, headers) else NO_TOKEN

    def _is_own(self, host: _Authority) -> bool:
        """A name of somebody else that leads here is an attack (DNS rebinding); a number is not."""
        own = {"localhost", self.host.lower(), socket.gethostname().lower()}
        return host.name in own or _is_number(host.name)

    def _has_token(self, target: RequestTarget, headers: Message) -> bool:
        given = list(target.query.get("token", []))
        for value in headers.get_all("Authorization", []):
            kind, _, carried = value.partition(" ")
            if kind.lower() == "bearer":
                given.append(carried.strip())
        return any(hmac.compare_digest(one.encode(), self.token.encode()) for one in given)


def _is_same(origin: str, host: _Authority) -> bool:
    """The page that asks is at the address it asks."""
    found = _ORIGIN.fullmatch(origin)
    return found is not None and _Authority.parse(found["authority"]) == host


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
