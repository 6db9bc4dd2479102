# Copyright (c) The k230.executorch developers
# SPDX-License-Identifier: Apache-2.0
"""Connection to msh, the shell of a K230 board's RT-Smart core."""

from __future__ import annotations

DOCUMENTATION = r"""
name: msh
short_description: Run raw commands on a K230 board's RT-Smart core
version_added: 0.1.0
description:
  - Types commands at msh over the board's second serial port and returns what they print.
  - Only the module M(ansible.builtin.raw) works. msh has neither exit status, redirection nor
    Python; data belongs into files on C(/sharefs), see M(k230.executorch.put).
  - The return code is made up from the text. 0 is an ordinary end, 127 an unknown command, 139 a
    crash, 124 no end within O(timeout).
author:
  - The k230.executorch developers (@k230)
options:
  console:
    description: Device path or pyserial URL (C(socket://), C(rfc2217://)) of the console.
    type: str
    required: true
    vars:
      - name: ansible_msh_console
      - name: k230_console
  baudrate:
    description: Speed of a serial console.
    type: int
    default: 115200
    vars:
      - name: ansible_msh_baudrate
      - name: k230_console_baudrate
  timeout:
    description: Seconds a command may take before it gets Ctrl-C.
    type: float
    default: 60
    vars:
      - name: ansible_msh_timeout
    env:
      - name: ANSIBLE_MSH_TIMEOUT
  log:
    description: Folder for a raw log with time stamps, one file per host. None without it.
    type: path
    vars:
      - name: ansible_msh_log
"""

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.connection import ConnectionBase
from ansible_collections.k230.executorch.k230_lib.board.console import MshConsole
from ansible_collections.k230.executorch.k230_lib.board.console_text import command_not_found
from ansible_collections.k230.executorch.k230_lib.errors import (
    InputError,
    K230Error,
    ProgramCrashedError,
    ProgramHungError,
)

_NOT_FOUND = 127
_CRASHED = 139
_TIMED_OUT = 124


class Connection(ConnectionBase):
    """One console, opened at the first command and held until the task ends."""

    transport = "k230.executorch.msh"
    has_pipelining = False
    #: msh knows no ``sh -c``.
    allow_executable = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._console: MshConsole | None = None

    def _host(self) -> str:
        return str(self._play_context.remote_addr or "board")

    def _connect(self) -> Connection:
        self._open()
        return self

    def _open(self) -> MshConsole:
        if self._console is None:
            folder = self.get_option("log")
            log = Path(folder) / f"{self._host()}.log" if folder else None
            try:
                self._console = MshConsole.open(
                    self.get_option("console"),
                    self._host(),
                    log,
                    baudrate=self.get_option("baudrate"),
                )
            except K230Error as error:
                raise AnsibleConnectionFailure(str(error)) from error
            self._connected = True
        return self._console

    def exec_command(
        self, cmd: str, in_data: bytes | None = None, sudoable: bool = True
    ) -> tuple[int, bytes, bytes]:
        """Run ``cmd`` at msh."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        if in_data:
            raise AnsibleError("msh gives programs no standard input; only raw commands work.")
        try:
            output = self._open().run(cmd, timeout=self.get_option("timeout"))
        except ProgramCrashedError as error:
            return _CRASHED, b"", str(error).encode()
        except ProgramHungError as error:
            return _TIMED_OUT, b"", str(error).encode()
        except InputError as error:
            raise AnsibleError(str(error)) from error
        except K230Error as error:
            raise AnsibleConnectionFailure(str(error)) from error
        text = f"{output}\n" if output else ""
        return _NOT_FOUND if command_not_found(output) else 0, text.encode(), b""

    def put_file(self, in_path: str, out_path: str) -> None:
        """Refused: the console carries commands only."""
        raise AnsibleError("msh takes no files; use k230.executorch.put over the board's Linux.")

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Refused: the console carries commands only."""
        raise AnsibleError("msh gives no files; use k230.executorch.fetch over the board's Linux.")

    def close(self) -> None:
        """Give the console back."""
        if self._console is not None:
            self._console.close()
            self._console = None
        self._connected = False

    def reset(self) -> None:
        """Close, so that the next command opens it anew."""
        self.close()
