from __future__ import annotations

import threading
import time

from k230_lib.virtual.uart import RING_BYTES, Uart


class _Reader:
    """Software that reads the line, as the shell at its prompt does."""

    def __init__(self, uart: Uart) -> None:
        self.got = bytearray()
        self._uart = uart
        self._alive = True
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        time.sleep(0.05)

    def _run(self) -> None:
        while len(self.got) < 10_000:
            self.got.append(self._uart.read_byte(lambda: self._alive))


def test_bytes_for_a_busy_core_beyond_the_ring_are_lost() -> None:
    uart = Uart()
    uart.busy()
    uart.receive(b"x" * 200)
    assert uart.lost == 200 - RING_BYTES


def test_a_long_burst_at_the_prompt_loses_bytes_and_a_paced_one_does_not() -> None:
    uart = Uart()
    reader = _Reader(uart)
    uart.receive(bytes(range(32, 32 + 64)) * 15)
    assert 0 < uart.lost < 900
    lost = uart.lost
    time.sleep(0.2)
    before = len(reader.got)
    for _ in range(15):
        uart.receive(b"y" * RING_BYTES)
        time.sleep(RING_BYTES * 1.2 * 10 / 115200)
    time.sleep(0.1)
    assert uart.lost == lost
    assert len(reader.got) - before == 15 * RING_BYTES


def test_a_short_burst_always_arrives() -> None:
    uart = Uart()
    reader = _Reader(uart)
    uart.receive(b"z" * RING_BYTES)
    time.sleep(0.1)
    assert bytes(reader.got) == b"z" * RING_BYTES


def test_a_client_that_waits_for_each_echo_loses_nothing_however_long_the_line() -> None:
    uart = Uart(115200)
    echoed = bytearray()
    uart.attach(echoed.extend)

    def shell() -> None:
        while True:
            uart.echo(bytes([uart.read_byte(lambda: True)]))

    threading.Thread(target=shell, daemon=True).start()
    for count in range(1, 41):
        uart.receive(b"x" * (RING_BYTES // 2))
        deadline = time.monotonic() + 5
        while len(echoed) < count * RING_BYTES // 2 and time.monotonic() < deadline:
            time.sleep(0.0005)
    assert uart.lost == 0
    assert len(echoed) == 40 * RING_BYTES // 2


def test_output_goes_at_line_speed() -> None:
    uart = Uart(115200)
    started = time.monotonic()
    uart.write(b"a" * 2304)
    assert time.monotonic() - started > 0.18


def test_faults_damage_what_is_printed() -> None:
    uart = Uart(0, seed=1)
    got = bytearray()
    uart.attach(got.extend)
    uart.faults.drop_out = 0.2
    uart.write(b"a" * 1000)
    assert 700 < len(got) < 900
    got.clear()
    uart.faults.drop_out = 0.0
    uart.faults.garble_out = 0.2
    uart.write(b"a" * 1000)
    assert len(got) == 1000
    assert 700 < got.count(b"a") < 900
    got.clear()
    uart.faults.garble_out = 0.0
    uart.faults.duplicate_out = 0.2
    uart.write(b"a" * 1000)
    assert 1100 < len(got) < 1300
    got.clear()
    uart.faults.duplicate_out = 0.0
    uart.faults.mute = True
    uart.write(b"a" * 1000)
    uart.inject(b"noise")
    assert got == b"noise"


def test_lost_and_garbled_input() -> None:
    uart = Uart(0, seed=2)
    reader = _Reader(uart)
    uart.faults.drop_in = 0.5
    uart.receive(b"b" * 100)
    time.sleep(0.1)
    assert 20 < len(reader.got) < 80
