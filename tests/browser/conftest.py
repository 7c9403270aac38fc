"""A server on a free port with finished runs, and a headless Chromium."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from core.advice.prepare import prepare
from core.store import Store, TaskLibrary
from core.store.work import RUNS
from core.workers import LocalEngine
from core.workers.job_kinds import SERVERS, WARM
from core.workers.jobs import Jobs
from core.workers.processes import ROOT, free_port
from tests.browser.apps.serving import start, wait_for_answer
from tests.browser.chromium import ARGUMENTS, UNOPTIMISED, install_chromium
from tests.browser.hostile import hostile_draft
from tests.browser.prepared import finished_runs
from tests.browser.seen import WIDE
from tests.core.artifacts.made import recorded

# A worker, a server and a browser share the machine and may have to wait for torch to be imported.
expect.set_options(timeout=60_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run a failed browser test once more: a browser, a server and a worker on two cores can miss any deadline.

    The summary counts the tests that passed at the second attempt.
    """
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=1))


class Server:
    """A `streamlit run app.py` over one store, which can be killed and restarted on the same port."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.store_folder = folder / "runs"
        self.environment = environment | {"SCL_RUNS": str(self.store_folder)}
        self.log = folder / "server.log"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        self._process = start(ROOT / "app.py", self.port, self.log, **self.environment)
        wait_for_answer(self._process, self.port, self.log)

    def kill(self) -> None:
        """Send SIGKILL, as a crash of the machine would."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server, its warm processes and its workers."""
        self.kill()
        for line in {*WARM.values(), *SERVERS}:
            process = Store(self.store_folder).warm_process(line)
            if process is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.worker.pid, signal.SIGKILL)
        self.stop_runs()

    def stop_runs(self) -> None:
        store = Store(self.store_folder)
        for run in store.runs():
            if run.status.active:
                store.send(run.id, "stop")
        deadline = time.monotonic() + 20
        while any(run.status.active for run in store.runs()) and time.monotonic() < deadline:
            time.sleep(0.1)
        store.close()


@pytest.fixture(scope="session")
def session_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server")) as made:
        store = Store(made.store_folder)
        LocalEngine(store).warm_up()
        warm = store.warm_process(RUNS)
        assert warm is not None
        psutil.Process(warm.worker.pid).nice(10)  # lowers the priority of its runs, which would keep two cores busy
        store.close()
        yield made


@pytest.fixture(scope="module")
def server(session_server: Server) -> Iterator[Server]:
    """Yield the server shared by most tests. Runs that a module leaves behind end with it."""
    yield session_server
    session_server.stop_runs()


@pytest.fixture(autouse=True)
def no_job_left(session_server: Server) -> Iterator[None]:
    """Cancel the jobs that a test leaves behind, since the next test's maps would queue behind them."""
    yield
    jobs = Jobs(session_server.store_folder)
    for job in jobs.jobs():
        if job.active:
            jobs.cancel(job.id)


@pytest.fixture(scope="module")
def fresh_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a server whose store is empty."""
    with Server(tmp_path_factory.mktemp("fresh")) as made:
        yield made


@pytest.fixture
def server_store(server: Server) -> Iterator[Store]:
    """Yield the server's store. A run that a test leaves behind is ended, since it would delay the next test's runs."""
    store = Store(server.store_folder)
    before = {run.id for run in store.runs()}
    yield store
    for run in store.runs():
        if run.status.active and run.id not in before:
            store.send(run.id, "stop")
    store.close()


@pytest.fixture
def library(server: Server) -> TaskLibrary:
    return TaskLibrary(server.store_folder)


@pytest.fixture(scope="session")
def hostile_run(session_server: Server, draft: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the id of a finished run whose name, texts and labels contain markup."""
    store = Store(session_server.store_folder)
    run_id = recorded(store, hostile_draft(tmp_path_factory.mktemp("hostile"), draft)).id
    store.close()
    return run_id


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = install_chromium()
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=path, args=[*ARGUMENTS, UNOPTIMISED])
        yield made
        made.close()


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Yield a context that caches the app's scripts, which take a second to load and parse."""
    allowed = ["clipboard-read", "clipboard-write"]
    made = browser.new_context(viewport={"width": 1400, "height": 1000}, permissions=allowed)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    made = context.new_page()
    made.set_default_timeout(60_000)
    yield made
    made.close()


@pytest.fixture
def laptop(page: Page) -> Page:
    """Yield a page on the smaller of the two wide screens."""
    page.set_viewport_size({"width": WIDE[0][0], "height": WIDE[0][1]})
    return page


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Return a function that makes the page of another browser, without stored data."""
    contexts: list[BrowserContext] = []

    def make(width: int = 1400, height: int = 1000, **options: Any) -> Page:
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)
        return page

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def newcomer(visit: Callable[..., Page]) -> Page:
    """Return the page of a browser without stored data."""
    return visit()


@pytest.fixture(scope="session")
def finished(session_server: Server, draft: Any) -> list[str]:
    """Return the ids of two finished runs with words and weights, and of their experiment. No test changes them."""
    return finished_runs(session_server.store_folder, draft)


@pytest.fixture
def template(server_store: Store, draft: Any) -> Any:
    """Return the id of a run whose settings can fill the form: the tiny encoder on the small task."""

    def make(**arguments: Any) -> str:
        config, _ = prepare(draft(**arguments), gpu=False)
        run_id = server_store.create(config)
        server_store.send(run_id, "stop")
        return run_id

    return make
