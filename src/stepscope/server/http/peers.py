"""Which user of this machine is at the other end of a connection, where the system shows it: Linux, and local connections."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from werkzeug.wrappers import Request

_TABLES = {socket.AF_INET: "/proc/net/tcp", socket.AF_INET6: "/proc/net/tcp6"}
_ADDRESS, _USER = 1, 7


def user_of(request: Request) -> int | None:
    """The number of the user whose process asks; None where that is unknown."""
    address, port = request.environ.get("REMOTE_ADDR", ""), request.environ.get("REMOTE_PORT", "")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        wanted = _as_in_table(family, address, int(port))
        rows = Path(_TABLES[family]).read_text("ascii").splitlines()[1:]
    except (OSError, ValueError):
        return None
    found = (row.split() for row in rows)
    return next((int(words[_USER]) for words in found if words[_ADDRESS] == wanted), None)


def _as_in_table(family: socket.AddressFamily, address: str, port: int) -> str:
    """The kernel writes each word of 32 bits as a number of this machine."""
    data = socket.inet_pton(family, address)
    words = (int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data), 4))
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
