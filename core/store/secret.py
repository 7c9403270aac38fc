"""The secret key with which a store's server signs data that browsers store."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

from core.errors import StoreError

NAME, BYTES = "server.key", 32
WRITING_S = 2.0


def server_secret(folder: Path) -> str:
    """Return the secret of a store's folder, creating it on first use. Only the server's user can read the file.

    Raises: StoreError if it cannot be read or written.
    """
    path = folder / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read(path)
    except OSError as error:
        raise StoreError(
            "{path} cannot be written ({reason}): make room, or check its folder.", path=path, reason=error.strerror
        ) from error
    with os.fdopen(descriptor, "w") as file:
        secret = secrets.token_hex(BYTES)
        file.write(secret)
    return secret


def _read(path: Path) -> str:
    """Read the secret, waiting up to WRITING_S while another process writes it."""
    deadline = time.monotonic() + WRITING_S
    while True:
        try:
            text = path.read_text()
        except OSError as error:
            raise StoreError(
                "{path} cannot be read ({reason}): check who owns it.", path=path, reason=error.strerror
            ) from error
        if len(text) == 2 * BYTES:
            return text
        if time.monotonic() > deadline:
            raise StoreError("{path} is damaged: delete it, and visitors are new ones.", path=path)
        time.sleep(0.02)
