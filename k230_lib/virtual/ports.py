"""How clients reach the virtual serial line: TCP, RFC 2217 and a pty.

The network ports behave like a serial device server: one client at a time over both, a second one
is closed at once.
"""

from __future__ import annotations

import os
import pty
import select
import socket
import threading
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .uart import Uart

# A client that does not read loses output, as on a line without flow control.
_SEND_PATIENCE_SECONDS = 1.0
_HANGUP_POLL_SECONDS = 0.05


class Exclusive:
    """The one place on the line that a network client may take."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def take(self) -> bool:
        return self._lock.acquire(blocking=False)

    def give_back(self) -> None:
        self._lock.release()


class _Plain:
    """Bytes pass as they are: pyserial's ``socket://``."""

    def __init__(self, client: socket.socket) -> None:
        del client

    def incoming(self, data: bytes) -> bytes:
        return data

    def outgoing(self, data: bytes) -> bytes:
        return data


class _Rfc2217:
    """Telnet with serial port control: pyserial's ``rfc2217://``."""

    def __init__(self, client: socket.socket) -> None:
        import serial
        import serial.rfc2217

        class Replies:
            def write(self, data: bytes) -> None:
                client.sendall(data)

        line = serial.serial_for_url("loop://", baudrate=115200)
        self._manager: Any = serial.rfc2217.PortManager(line, Replies())

    def incoming(self, data: bytes) -> bytes:
        return b"".join(self._manager.filter(data))

    def outgoing(self, data: bytes) -> bytes:
        return b"".join(self._manager.escape(data))


class NetworkPort:
    """A listening TCP port in front of the line; raises ``OSError`` when the port is taken."""

    def __init__(self, uart: Uart, port: int, place: Exclusive, *, rfc2217: bool = False) -> None:
        self._uart = uart
        self._place = place
        self._codec: Callable[[socket.socket], _Plain | _Rfc2217] = _Rfc2217 if rfc2217 else _Plain
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind(("127.0.0.1", port))
            self._listener.listen(4)
        except OSError:
            self._listener.close()
            raise
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, name=f"console-{self.port}", daemon=True).start()

    def close(self) -> None:
        """Accept no further clients."""
        # shutdown wakes the accepting thread, close alone would not
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._place.take():
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        codec = self._codec(client)

        def send(data: bytes) -> None:
            _send_or_lose(client, codec.outgoing(data))

        self._uart.attach(send)
        try:
            while data := client.recv(4096):
                self._uart.receive(codec.incoming(data))
        except OSError:
            pass  # the client went away without a goodbye
        finally:
            self._uart.detach(send)
            client.close()
            self._place.give_back()


def _send_or_lose(client: socket.socket, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            if not select.select([], [client], [], _SEND_PATIENCE_SECONDS)[1]:
                return
            view = view[client.send(view, socket.MSG_DONTWAIT) :]
        except (OSError, ValueError):
            return  # gone; its reader notices and detaches


class PtyPort:
    """A pseudo terminal with a link to it: what ``/dev/ttyACM1`` is on a rack."""

    def __init__(self, uart: Uart, link: Path) -> None:
        self._uart = uart
        self._master, slave = pty.openpty()
        tty.setraw(slave)
        device = os.ttyname(slave)
        # Without a slave of our own, a hang-up tells whether a client has it open.
        os.close(slave)
        os.set_blocking(self._master, False)
        link.unlink(missing_ok=True)
        link.symlink_to(device)
        self.link = link
        self._poll = select.poll()
        self._poll.register(self._master, select.POLLIN)
        self._closed = threading.Event()
        uart.attach(self._send)
        threading.Thread(target=self._read, name="console-pty", daemon=True).start()

    def close(self) -> None:
        """Take the pty away."""
        self._closed.set()
        self._uart.detach(self._send)
        self.link.unlink(missing_ok=True)

    def _hung_up(self) -> bool:
        poll = select.poll()
        poll.register(self._master, 0)
        return any(event & select.POLLHUP for _, event in poll.poll(0))

    def _send(self, data: bytes) -> None:
        if self._closed.is_set() or self._hung_up():
            return
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._master, view) :]
            except BlockingIOError:
                if not select.select([], [self._master], [], _SEND_PATIENCE_SECONDS)[1]:
                    return

    def _read(self) -> None:
        while not self._closed.is_set():
            events = self._poll.poll(200)
            if not events:
                continue
            if events[0][1] & select.POLLIN:
                try:
                    self._uart.receive(os.read(self._master, 4096))
                    continue
                except OSError:
                    pass  # the last client closed between poll and read
            self._closed.wait(_HANGUP_POLL_SECONDS)
        os.close(self._master)
