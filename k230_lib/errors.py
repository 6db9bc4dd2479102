"""The kinds of failure a user can meet.

Every message is one line that names the board (where there is one), what was expected, what was
found and what to do next. Callers print ``str(error)``; a traceback is for our own mistakes only.
"""

from __future__ import annotations


class K230Error(Exception):
    """Root of all errors that are told to the user in one line.

    Args:
        message: what was expected and what was found.
        board: inventory name of the board concerned, if any.
        hint: what to do next, as an imperative sentence.
    """

    def __init__(self, message: str, *, board: str | None = None, hint: str | None = None) -> None:
        self.message = message
        self.board = board
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        where = f"{self.board}: " if self.board else ""
        if not self.hint:
            return f"{where}{self.message}"
        stop = "" if self.message.endswith((".", "!", "?")) else "."
        return f"{where}{self.message}{stop} Next: {self.hint}"

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions with keyword-only arguments do not survive pickling between processes.
        return (_rebuild, (type(self), self.message, self.board, self.hint))


def _rebuild(kind: type[K230Error], message: str, board: str | None, hint: str | None) -> K230Error:
    return kind(message, board=board, hint=hint)


class InputError(K230Error):
    """A value, file or combination given by the user cannot be used."""


class EnvironmentProblemError(K230Error):
    """The controller lacks a tool, package, permission or space."""


class BoardUnreachableError(K230Error):
    """No SSH connection to the board's Linux."""


class BoardCommandError(K230Error):
    """A command on the board's Linux failed or answered something unexpected."""


class BoardSpaceError(K230Error):
    """Not enough free space on the board."""


class TransferError(K230Error):
    """What arrived differs from what was sent, or the transfer broke."""


class StorageError(K230Error):
    """A partition table, partition or file system is not as required; nothing was written."""


class ConsoleError(K230Error):
    """The serial console does not do what msh does."""


class ConsoleBusyError(ConsoleError):
    """Another program holds the console port."""


class WrongConsoleError(ConsoleError):
    """Something else than msh answers (Linux, U-Boot)."""


class ProgramCrashedError(ConsoleError):
    """The program on the RT-Smart core ended with a fault."""


class ProgramHungError(ConsoleError):
    """The program on the RT-Smart core made no progress in the time allowed."""


class BoardRebootedError(ConsoleError):
    """The board restarted while a command was running."""


class ModelError(K230Error):
    """A model cannot be exported, loaded or does not match its contract."""


class DatasetError(K230Error):
    """Images, labels or shards are missing, damaged or contradict each other."""


class RunnerError(K230Error):
    """The runner cannot be built, is of the wrong kind, or lacks operators."""


class ResultsError(K230Error):
    """A results file is damaged, of another run, or incomplete."""


class VirtualBoardError(K230Error):
    """A virtual board cannot be started, stopped or reached."""
