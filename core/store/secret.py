"""A secret of a store's server, with which it signs what browsers keep for it."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

from core.errors import StoreError

NAME, BYTES = "server.key", 32
WRITING_S = 2.0


def server_secret(folder: Path) -> str:
    """The secret of a store's folder, made when it is first asked for; only whoever runs the server can read it.

    Raises: StoreError where it can be neither read nor written.
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
    """Another process may just be writing it."""
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
