from __future__ import annotations

import socket
import time

import pytest

serial = pytest.importorskip("serial")


def _ask(url: str, line: bytes, end: bytes) -> bytes:
    with serial.serial_for_url(url, baudrate=115200, timeout=0.1) as port:
        port.write(line + b"\r")
        got = b""
        deadline = time.monotonic() + 5
        while not got.endswith(end) and time.monotonic() < deadline:
            got += port.read(256)
        return got


def test_a_second_network_client_is_closed_at_once(console) -> None:
    for port in (console.port.port, console.rfc2217.port):
        with socket.create_connection(("127.0.0.1", port), timeout=2) as second:
            assert second.recv(10) == b""
    assert console.ask("pwd") == "/\r\n"


@pytest.mark.parametrize("kind", ["socket", "rfc2217"])
def test_pyserial_urls(console, kind: str) -> None:
    console.client.close()
    time.sleep(0.1)
    port = console.port.port if kind == "socket" else console.rfc2217.port
    answer = _ask(f"{kind}://127.0.0.1:{port}", b"pwd", b"msh />")
    assert answer == b"pwd\r\n/\r\nmsh />"


def test_place_is_free_again_after_a_client_has_gone(console) -> None:
    console.client.close()
    time.sleep(0.1)
    for _ in range(3):
        answer = _ask(f"socket://127.0.0.1:{console.port.port}", b"", b"msh />")
        assert answer == b"\r\nmsh />"
        time.sleep(0.05)


def test_pty_shows_nothing_from_before_it_was_opened(console) -> None:
    console.ask("help")
    assert console.pty.link.is_symlink()
    assert _ask(str(console.pty.link), b"pwd", b"msh />") == b"pwd\r\n/\r\nmsh />"
    console.ask("help")
    assert _ask(str(console.pty.link), b"pwd", b"msh />") == b"pwd\r\n/\r\nmsh />"
