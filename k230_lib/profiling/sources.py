"""Opening the files that the user names, with one clear error each."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..errors import InputError


def read_file(path: Path, kind: str, *, hint: str) -> bytes:
    """The bytes of ``path``.

    Args:
        kind: what the file should be, for messages, e.g. ``ETDump``.
        hint: what to do when it cannot be used.

    Raises:
        InputError: the file is missing, a folder, unreadable or empty.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such {kind}.", hint=hint) from None
    except IsADirectoryError:
        raise InputError(f"{path}: a folder, expected an {kind} file.", hint=hint) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.", hint=hint) from error
    if not data:
        raise InputError(f"{path}: the {kind} is empty.", hint=hint)
    return data


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes in lower-case hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
