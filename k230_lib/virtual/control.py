"""The control channel of a running board: JSON lines over an abstract unix socket.

The name of the socket carries the board's number, so that the kernel itself keeps two boards from
having the same number, and frees it when the board's root process dies in whatever way.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import K230Error, VirtualBoardError

_TIMEOUT_SECONDS = 60.0
Handler = Callable[..., Any]


def socket_name(number: int) -> str:
    return f"\0k230-virtual-board-{number}"


def ask(number: int, command: str, arguments: Mapping[str, Any] | None = None) -> Any:
    """Let the board ``number`` do ``command``; returns its answer.

    Raises:
        VirtualBoardError: no such board runs, or it could not do it.
    """
    request = json.dumps({"command": command, "arguments": dict(arguments or {})})
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(_TIMEOUT_SECONDS)
        try:
            client.connect(socket_name(number))
            client.sendall(request.encode() + b"\n")
            line = client.makefile("rb").readline()
        except OSError as error:
            raise VirtualBoardError(
                f"virtual board {number} does not run ({error.strerror or error})",
                hint="start it with `k230 boards up`.",
            ) from None
    if not line:
        raise VirtualBoardError(f"virtual board {number} ended while doing {command}")
    answer = json.loads(line)
    if "error" in answer:
        raise VirtualBoardError(answer["error"])
    return answer["value"]


class ControlServer:
    """Answers :func:`ask` by calling handlers by name; takes the board's number.

    Raises:
        OSError: another board has the number.
    """

    def __init__(self, number: int, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(socket_name(number))
        self._socket.listen(16)

    def start(self) -> None:
        threading.Thread(target=self._accept, name="control", daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._socket.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rwb") as stream:
            if _peer_uid(client) not in (0, os.geteuid()):
                return
            for line in stream:
                stream.write(json.dumps(self._answer(line)).encode() + b"\n")
                try:
                    stream.flush()
                except OSError:
                    return  # the asker has given up

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            handler = self._handlers[request["command"]]
            return {"value": handler(**request["arguments"])}
        except (KeyError, TypeError, ValueError) as error:
            return {"error": f"bad request: {error}"}
        except (K230Error, OSError) as error:
            return {"error": str(error)}


def _peer_uid(client: socket.socket) -> int:
    credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, uid, _ = struct.unpack("3i", credentials)
    return int(uid)
