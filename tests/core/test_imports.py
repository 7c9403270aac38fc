"""Dependencies point one way: every import is checked, and a backward one fails."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from tests.structure import statements

ROOT = Path(__file__).resolve().parents[2]
CORE = sorted((ROOT / "core").rglob("*.py"))
APP = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))]

# Allowed imports between the folders of core. "encoders.packing" allows that one module. All folders may import
# messages.
ALLOWED = {
    "messages": "",
    "errors": "",
    "atomic": "",
    "glossary": "",
    "quantities": "",
    "registry": "errors",
    "events": "",
    "parameters": "errors",
    "settings": "errors",
    "weight_files": "errors",
    "models": "errors",
    "catalogue": "models.source parameters registry",
    "texts": "catalogue errors parameters registry",
    "losses": "catalogue parameters registry",
    # Back-translation locates its models as encoders do, and an encoder picks the tokens that [CLS] attends to.
    "views": "catalogue encoders.packing errors models parameters registry",
    "config": "catalogue errors events parameters quantities",
    "encoders": "errors events models",
    "representation": "errors parameters quantities registry",
    "figures": "catalogue config errors events quantities representation",
    # Noise in a training text is a view that is made once.
    "tasks": "atomic config errors models quantities settings texts",
    "advice": "config errors events models parameters quantities representation tasks texts",
    "training": (
        "advice atomic config encoders errors events losses parameters registry representation tasks texts "
        "views weight_files"
    ),
    # Its process starts like a job's.
    "lab": "catalogue config errors losses parameters representation workers",
    "store": "atomic config errors events quantities representation settings tasks.rows weight_files",
    "workers": "advice atomic config errors events models representation settings store tasks training weight_files",
    "artifacts": (
        "advice atomic catalogue config encoders errors events models parameters registry representation settings "
        "store tasks texts training views weight_files workers"
    ),
    "experiments": (
        "advice artifacts config errors events figures.interval_chart figures.level_curves figures.template "
        "models.source parameters quantities registry representation store tasks workers"
    ),
    "lessons": "artifacts config errors experiments lab losses.forces quantities representation store",
    "exports": (
        "advice artifacts config encoders errors events figures losses models parameters quantities registry "
        "representation store tasks training views workers.run_rows"
    ),
    "cli": "advice artifacts atomic config errors events experiments exports quantities settings store tasks workers",
    "__main__": "cli",
    "__init__": "",
}
# These folders compute and import torch at the top. So do the entry modules of separate processes, the modules that
# only they import, and the export of scripts, imported on demand. All other modules avoid torch, or import it in the
# one function that computes.
WITH_TORCH = (
    "core.losses",
    "core.views",
    "core.encoders",
    "core.training",
    "core.lab.__main__",
    "core.lab.answer",
    "core.lab.dynamics",
    "core.artifacts.inspect_job",
    "core.workers.run_worker",
    "core.workers.followers",
    "core.workers.cluster",
    "core.exports.script",
)
COMPUTING = tuple(f"{name}." for name in WITH_TORCH)
HEAVY = [
    "torch",
    "umap",
    "numba",
    "transformers",
    "sklearn",
    "scipy.stats",
    "scipy.optimize",
    "statsmodels",
    "threadpoolctl",
]


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Return the dotted names of all imports of a file, also inside functions."""
    found: list[str] = []
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(path.relative_to(ROOT).parts[: -node.level]) if node.level else ""
            module = ".".join(part for part in (package, node.module) if part)
            found += [f"{module}.{alias.name}" for alias in node.names]
    return tuple(found)


def room_of(path: Path) -> str:
    inner = path.relative_to(ROOT / "core")
    return inner.parts[0] if len(inner.parts) > 1 else inner.stem


def is_allowed(room: str, imported: str) -> bool:
    inner = imported.removeprefix("core.")
    if inner.split(".")[0] in (room, "__version__", "messages"):
        return True
    return any(inner == allowed or inner.startswith(f"{allowed}.") for allowed in ALLOWED[room].split())


def offenders(paths: Sequence[Path], is_offence: Callable[[Path, str], bool]) -> list[str]:
    """Return the imports that break a rule, each with its file."""
    assert paths
    return [f"{path.relative_to(ROOT)}: {name}" for path in paths for name in imports(path) if is_offence(path, name)]


def is_from(name: str, *roots: str) -> bool:
    return name.split(".", maxsplit=1)[0] in roots


def in_rooms(*rooms: str) -> list[Path]:
    return [path for path in CORE if room_of(path) in rooms]


def test_core_imports_neither_streamlit_nor_pages() -> None:
    assert offenders(CORE, lambda _, name: is_from(name, "streamlit", "pages", "app", "tests")) == []


def test_every_room_imports_only_what_lies_below_it() -> None:
    assert offenders(CORE, lambda path, name: is_from(name, "core") and not is_allowed(room_of(path), name)) == []


def test_losses_import_torch_and_nothing_else_from_outside() -> None:
    known = ("core", "torch", *sys.stdlib_module_names)
    assert offenders(in_rooms("losses"), lambda _, name: not is_from(name, *known)) == []


def test_figures_and_representation_take_arrays() -> None:
    heavy = ("torch", "transformers", "plotly")
    assert offenders(in_rooms("figures", "representation"), lambda _, name: is_from(name, *heavy)) == []


def test_pieces_of_pages_do_not_import_pages() -> None:
    pieces = sorted((ROOT / "pages" / "ui").rglob("*.py"))
    assert offenders(pieces, lambda _, name: is_from(name, "pages") and not name.startswith("pages.ui")) == []


def test_only_state_touches_session_state_and_the_address() -> None:
    found = []
    for path in APP:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        touched = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        touched |= {name.split(".")[-1] for name in imports(path)}
        if touched & {"session_state", "query_params"}:
            found.append(path)
    assert found == [ROOT / "pages" / "ui" / "state.py"]


def test_the_rules_catch_an_arrow_that_runs_back() -> None:
    assert not is_allowed("losses", "core.training.loop.train")
    assert not is_allowed("store", "core.workers.LocalEngine")
    assert not is_allowed("config", "core.losses.supcon.supcon_loss")
    assert not is_allowed("figures", "core.store")
    assert not is_allowed("encoders", "core.views.token_clusters.cluster_views")
    assert not is_allowed("config", "core.advice.prepare")
    assert is_allowed("config", "core.catalogue.losses.LOSSES")
    assert is_allowed("views", "core.encoders.packing.Tokens")
    assert is_allowed("training", "core.config.plan.frame_steps")


def test_every_room_of_core_has_a_rule() -> None:
    assert {room_of(path) for path in CORE} <= ALLOWED.keys()


def test_no_two_modules_of_core_share_a_name() -> None:
    """Except registries, their entries and a package's entry points, a name belongs to one module."""
    found = Counter(path.stem for path in CORE if path.stem not in ("__init__", "__main__", "entry", "registry"))
    assert [name for name, count in found.items() if count > 1] == []


def test_only_the_modules_that_compute_load_heavy_libraries() -> None:
    """Import module after module in one process. Libraries stay loaded, so the first module that loads one is named."""
    paths = [*CORE, *sorted((ROOT / "pages" / "ui").rglob("*.py"))]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    light = [name for name in names if not name.endswith("__main__") and not f"{name}.".startswith(COMPUTING)]
    code = f"""
import importlib, sys
for module in {light!r}:
    importlib.import_module(module)
    if heavy := [name for name in {HEAVY!r} if name in sys.modules]:
        sys.exit(f"{{module}} loads {{heavy}}")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
