"""The secret key with which a store's server signs data that browsers store."""

from __future__ import annotations

import secrets
from pathlib import Path

from filelock import FileLock

from core.atomic import atomic_write
from core.errors import StoreError

NAME, BYTES = "server.key", 32


def server_secret(folder: Path) -> str:
    """Return the secret of a store's folder, creating it on first use. Only the server's user can read the file.

    Raises: StoreError if it cannot be read or written.
    """
    path = folder / NAME
    if not path.exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(folder / f"{NAME}.lock"):
                if not path.exists():  # another process may have created it
                    with atomic_write(path) as partial:
                        partial.touch(0o600)
                        partial.write_text(secrets.token_hex(BYTES))
        except OSError as error:
            raise StoreError(
                "{path} cannot be written ({reason}): free space, or check its folder.",
                path=path,
                reason=error.strerror,
            ) from error
    try:
        text = path.read_text()
    except OSError as error:
        raise StoreError(
            "{path} cannot be read ({reason}): check its owner.", path=path, reason=error.strerror
        ) from error
    if len(text) != 2 * BYTES:
        raise StoreError("{path} is damaged: delete it. All visitors will then count as new.", path=path)
    return text
