"""A small Hub on the loopback address, with the endpoints that `huggingface_hub` and `datasets` use.

    with HubServer() as hub:
        add_tiny_sets(hub)
        subprocess.run([...], env=os.environ | hub.environment(tmp_path))

`huggingface_hub` reads HF_ENDPOINT on import, so clients run in a separate process with `environment`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
from pyarrow import parquet

RepoType = Literal["dataset", "model"]
Files = Mapping[str, bytes]

PARQUET_REVISION = "refs/convert/parquet"
API = re.compile(
    r"/api/(?P<kind>datasets/|models/)(?P<repo>[^/]+(?:/[^/]+)?)(?:/(?P<verb>revision|tree|paths-info)/(?P<rest>.*))?"
)
RESOLVE = re.compile(r"/(?P<kind>datasets/)?(?P<repo>[^/]+(?:/[^/]+)?)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
RANGE = re.compile(r"bytes=(\d+)-(\d*)")
COMMIT = re.compile(r"[0-9a-f]{40}")
CHUNK_BYTES = 16_384


@dataclass
class Repo:
    """A repository: the commit that each branch and each commit id names, and the files of each commit."""

    name: str
    commits: dict[str, str] = field(default_factory=dict)
    files: dict[str, Files] = field(default_factory=dict)
    gated: bool = False


@dataclass
class Served:
    """A request, and the bytes of content sent so far."""

    method: str
    path: str
    status: int
    bytes: int


class HubServer:
    """A server of the added repositories. Attributes may be changed while it runs.

    Attributes:
        bytes_per_s: speed at which a file's content is sent, None for no limit.
        broken: True if every response is a server error.
        served: all requests so far.
    """

    def __init__(self) -> None:
        self.bytes_per_s: float | None = None
        self.broken = False
        self.served: list[Served] = []
        self.repos: dict[tuple[RepoType, str], Repo] = {}
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.hub = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def environment(self, home: Path) -> dict[str, str]:
        """Return environment variables that make a process use this server as the Hub and cache in `home`."""
        return {
            "HF_ENDPOINT": self.endpoint,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_OFFLINE": "0",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }

    def add(self, kind: RepoType, name: str, files: Files, *, revision: str = "main", gated: bool = False) -> Repo:
        """Serve a repository, or another revision of it."""
        repo = self.repos.setdefault((kind, name), Repo(name))
        content = [(path, blob_id(data)) for path, data in sorted(files.items())]
        digest = hashlib.sha1(repr((kind, name, content)).encode()).hexdigest()
        commit = revision if COMMIT.fullmatch(revision) else digest
        repo.commits |= {revision: commit, commit: commit}
        repo.files[commit] = dict(files)
        repo.gated = gated or repo.gated
        return repo

    def bytes_of(self, part: str) -> int:
        """Return the bytes of content sent for paths that contain `part`."""
        return sum(request.bytes for request in self.served if part in request.path)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


class _Server(ThreadingHTTPServer):
    hub: HubServer
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect, such as cancelled ones."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body, a second packet, is delayed
    server: _Server

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the tests' output clean."""

    def _answer(self) -> None:
        self._body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.hub.broken:
            return self._error(HTTPStatus.INTERNAL_SERVER_ERROR, None)
        path = urlsplit(self.path).path
        match = API.fullmatch(path) or RESOLVE.fullmatch(path)
        if match is None:
            return self._error(HTTPStatus.NOT_FOUND, None)
        repo = self.server.hub.repos.get(("dataset" if match["kind"] == "datasets/" else "model", match["repo"]))
        if repo is None:
            return self._error(HTTPStatus.UNAUTHORIZED, "RepoNotFound")
        if match.re is API:
            return self._api(repo, match["verb"], match["rest"] or "")
        return self._resolve(repo, unquote(match["revision"]), unquote(match["path"]))

    def _api(self, repo: Repo, verb: str | None, rest: str) -> None:
        quoted, _, folder = rest.partition("/")
        commit = repo.commits.get(unquote(quoted) or "main")
        if commit is None:
            return self._error(HTTPStatus.NOT_FOUND, "RevisionNotFound")
        files = repo.files[commit]
        if verb == "tree":
            deep = parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[0].lower() in ("true", "1")
            entries = tree(files, unquote(folder), deep=deep)
            return self._error(HTTPStatus.NOT_FOUND, "EntryNotFound") if entries is None else self._json(entries)
        if verb == "paths-info":
            is_json = "json" in (self.headers.get("Content-Type") or "")
            wanted = json.loads(self._body)["paths"] if is_json else parse_qs(self._body.decode()).get("paths", [])
            return self._json([entry for path in wanted if (entry := path_info(files, path)) is not None])
        return self._json(
            {
                "id": repo.name,
                "sha": commit,
                "private": False,
                "gated": "auto" if repo.gated else False,
                "downloads": 0,
                "likes": 0,
                "tags": [],
                "siblings": [{"rfilename": path} for path in sorted(files)],
            }
        )

    def _resolve(self, repo: Repo, revision: str, path: str) -> None:
        if repo.gated:
            return self._error(
                HTTPStatus.FORBIDDEN if self.headers.get("Authorization") else HTTPStatus.UNAUTHORIZED, "GatedRepo"
            )
        commit = repo.commits.get(revision)
        if commit is None:
            return self._error(HTTPStatus.NOT_FOUND, "RevisionNotFound")
        data = repo.files[commit].get(path)
        head = {"X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        if data is None:
            return self._error(HTTPStatus.NOT_FOUND, "EntryNotFound", head)
        head["ETag"] = f'"{blob_id(data)}"'
        status = HTTPStatus.OK
        if wanted := RANGE.fullmatch(self.headers.get("Range") or ""):
            first, last = int(wanted[1]), min(int(wanted[2] or len(data)), len(data) - 1)
            if first >= len(data):
                return self._error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, None)
            head["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
            data, status = data[first : last + 1], HTTPStatus.PARTIAL_CONTENT
        return self._send(status, data, head, slow=True)

    def _json(self, value: Any) -> None:
        self._send(HTTPStatus.OK, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _error(self, status: HTTPStatus, code: str | None, more: Mapping[str, str] | None = None) -> None:
        head = {"X-Error-Code": code, "X-Error-Message": code} if code else {}
        self._send(status, json.dumps({"error": code or status.phrase}).encode(), head | dict(more or {}))

    def _send(self, status: HTTPStatus, data: bytes, head: Mapping[str, str], *, slow: bool = False) -> None:
        self.send_response(status)
        for name, value in head.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        served = Served(self.command, unquote(self.path), int(status), 0)
        self.server.hub.served.append(served)
        self.end_headers()
        if self.command != "HEAD":
            for start in range(0, len(data), CHUNK_BYTES):
                chunk = data[start : start + CHUNK_BYTES]
                if slow and self.server.hub.bytes_per_s is not None:
                    time.sleep(len(chunk) / self.server.hub.bytes_per_s)
                # Counted before sending, because the client may read the count at once.
                served.bytes += len(chunk)
                self.wfile.write(chunk)


def blob_id(data: bytes) -> str:
    """Return the git blob id of a file."""
    return hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()


def path_info(files: Files, path: str) -> dict[str, Any] | None:
    """Return the Hub's description of a file or folder, or None."""
    path = path.strip("/")
    if path in files:
        return {"type": "file", "path": path, "size": len(files[path]), "oid": blob_id(files[path])}
    if any(name.startswith(f"{path}/") for name in files):
        return {"type": "directory", "path": path, "size": 0, "oid": hashlib.sha1(path.encode()).hexdigest()}
    return None


def tree(files: Files, folder: str, *, deep: bool) -> list[dict[str, Any]] | None:
    """Return the entries of a folder, with subfolders if `deep`, or None if there is no such folder."""
    start = f"{folder.strip('/')}/" if folder.strip("/") else ""
    inside = sorted(path for path in files if path.startswith(start))
    if not inside:
        return None
    names: dict[str, None] = {}
    for path in inside:
        parts = path.removeprefix(start).split("/")
        for depth in range(1, len(parts) + 1 if deep else 2):
            names[start + "/".join(parts[:depth])] = None
    return [entry for name in names if (entry := path_info(files, name)) is not None]


def parquet_file(
    columns: Mapping[str, Sequence[Any]],
    *,
    classes: Mapping[str, Sequence[str]] | None = None,
    group: int | None = None,
) -> bytes:
    """Return a Parquet file as `datasets` writes it. `classes` names the labels of numeric columns.

    Args:
        group: rows per row group, all by default.
    """
    table = pa.table({name: list(values) for name, values in columns.items()})
    if classes:
        features: dict[str, Any] = {
            name: {"names": list(classes[name]), "_type": "ClassLabel"}
            if name in classes
            else {"dtype": str(table.schema.field(name).type), "_type": "Value"}
            for name in columns
        }
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    out = io.BytesIO()
    parquet.write_table(table, out, row_group_size=group)
    return out.getvalue()


def csv_file(*rows: Sequence[Any], delimiter: str = ",") -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    return out.getvalue().encode()


def card(configs: Mapping[str, Mapping[str, str]]) -> bytes:
    """Return a README.md that names the files of each configuration's splits."""
    described = [
        {"config_name": name, "data_files": [{"split": split, "path": path} for split, path in files.items()]}
        for name, files in configs.items()
    ]
    return f"---\nconfigs: {json.dumps(described)}\n---\n# A data set\n".encode()


OPINIONS = ("negative", "positive")


def opinions(count: int, start: int = 0) -> dict[str, list[Any]]:
    """Return columns text and label, with alternating labels."""
    numbers = range(start, start + count)
    return {
        "text": [f"text {i} is {('dull', 'lovely')[i % 2]}" for i in numbers],
        "label": [i % 2 for i in numbers],
    }


def add_tiny_sets(hub: HubServer) -> None:
    """Add small data sets of different kinds.

    - acme/tiny: Parquet, columns text and label (negative, positive), 60 train, 12 validation and 20 test rows
    - acme/two: CSV, columns sentence and topic, configurations "one" (30 train) and "two" (40 train, 8 dev)
    - acme/script: a script, and the Hub's conversion of its output, 24 train and 6 test rows
    - acme/old: a script that was never converted
    - acme/gated: as acme/tiny, for users who accepted its terms
    """
    classes = {"label": OPINIONS}
    tiny = {
        f"data/{split}-00000-of-00001.parquet": parquet_file(opinions(count, start), classes=classes)
        for split, count, start in (("train", 60, 0), ("validation", 12, 60), ("test", 20, 72))
    }
    hub.add("dataset", "acme/tiny", tiny)
    hub.add("dataset", "acme/gated", tiny, gated=True)
    topics = ("sport", "music")
    sentences = {
        path: csv_file(("sentence", "topic"), *((f"{path} sentence {i}", topics[i % 2]) for i in range(count)))
        for path, count in (("one/train.csv", 30), ("two/train.csv", 40), ("two/dev.csv", 8))
    }
    configs = {"one": {"train": "one/train.csv"}, "two": {"train": "two/train.csv", "dev": "two/dev.csv"}}
    hub.add("dataset", "acme/two", {"README.md": card(configs), **sentences})
    script = b"raise SystemExit('a script of a repository was run')\n"
    hub.add("dataset", "acme/old", {"old.py": script})
    hub.add("dataset", "acme/script", {"script.py": script, "README.md": b"# A data set\n"})
    converted = {
        "default/train/0000.parquet": parquet_file(opinions(12), classes=classes),
        "default/train/0001.parquet": parquet_file(opinions(12, 12), classes=classes),
        "default/test/0000.parquet": parquet_file(opinions(6, 24), classes=classes),
    }
    hub.add("dataset", "acme/script", converted, revision=PARQUET_REVISION)
