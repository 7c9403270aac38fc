"""Dependencies point one way: every import is read, and one that runs back fails."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = sorted((ROOT / "core").rglob("*.py"))
APP = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))]

# What a room of core may import from the others; "losses.registry" allows that one module.
ALLOWED = {
    "messages": set[str](),
    "errors": set[str](),
    "atomic": set[str](),
    "glossary": set[str](),
    "quantities": set[str](),
    "lazy": set[str](),
    "registry": {"errors"},
    "events": set[str](),
    "parameters": {"errors", "quantities"},
    "settings": {"errors"},
    "losses": {"errors", "lazy", "parameters", "registry"},
    # Back-translation finds its models as encoders are found; an encoder picks the tokens that [CLS] attends to.
    "views": {
        "encoders.packing",
        "encoders.source",
        "encoders.topk_tokens",
        "errors",
        "lazy",
        "parameters",
        "registry",
    },
    "config": {
        "errors",
        "losses.entry",
        "losses.registry",
        "parameters",
        "quantities",
        "views.entry",
        "views.registry",
    },
    "encoders": {"errors", "events", "lazy", "quantities"},
    "representation": {"errors", "parameters", "quantities", "registry"},
    "figures": {"config", "errors", "events", "losses.registry", "quantities", "representation"},
    # Noise in a training text is a view of it that is made once.
    "tasks": {
        "atomic",
        "config",
        "encoders.source",
        "errors",
        "quantities",
        "settings",
        "views.draws",
        "views.eda",
        "views.segments",
    },
    "training": {
        "atomic",
        "config",
        "encoders",
        "errors",
        "events",
        "losses",
        "parameters",
        "quantities",
        "representation",
        "tasks",
        "views",
    },
    # Its process is begun as those of jobs are.
    "lab": {"config", "errors", "lazy", "losses", "parameters", "representation", "workers"},
    "store": {"atomic", "config", "errors", "events", "quantities", "representation", "settings", "tasks.rows"},
    "workers": {
        "atomic",
        "config",
        "encoders",
        "errors",
        "events",
        "representation",
        "settings",
        "store",
        "tasks",
        "training",
    },
    "artifacts": {
        "atomic",
        "config",
        "encoders",
        "errors",
        "events",
        "losses.law",
        "parameters",
        "quantities",
        "representation",
        "settings",
        "store",
        "tasks",
        "training",
        "workers",
    },
    "experiments": {
        "artifacts",
        "config",
        "errors",
        "events",
        "figures.interval_chart",
        "parameters",
        "quantities",
        "registry",
        "representation",
        "settings",
        "store",
        "tasks",
        "training",
        "workers",
    },
    "lessons": {
        "artifacts",
        "config",
        "errors",
        "experiments",
        "losses.forces",
        "quantities",
        "representation",
        "store",
    },
    "exports": {
        "artifacts",
        "config",
        "encoders",
        "errors",
        "events",
        "figures",
        "losses.entry",
        # A script leaves out what that loss does from a size on alone.
        "losses.supcon",
        "parameters",
        "quantities",
        "registry",
        "representation",
        "store",
        "tasks",
        "training",
        "views.entry",
        "workers.run_rows",
    },
    "cli": {
        "artifacts",
        "atomic",
        "config",
        "errors",
        "events",
        "experiments",
        "exports",
        "quantities",
        "settings",
        "store",
        "tasks",
        "training",
        "workers",
    },
    "__main__": {"cli"},
    "__init__": set[str](),
}
LIGHT = (
    "core.artifacts.frame_loss",
    "core.artifacts.projector",
    "core.artifacts.replay",
    "core.artifacts.seeds",
    "core.artifacts.sentence",
    "core.artifacts.shared_examples",
    "core.artifacts.text_history",
    "core.artifacts.weights",
    "core.config",
    "core.config.equation",
    "core.config.presets",
    "core.config.suggestions",
    "core.config.turns",
    "core.exports.registry",
    "core.figures.curves",
    "core.figures.highlight",
    "core.figures.lab_curves",
    "core.figures.map_data",
    "core.figures.run_curves",
    "core.figures.words",
    "core.lab.answer",
    "core.lab.process",
    "core.losses.registry",
    "core.quantities",
    "core.representation.verdict",
    "core.store",
    "core.training.estimate",
    "core.training.newest_contrast",
    "core.training.pace",
    "core.training.plan",
    "core.training.prepare",
    "core.training.score_source",
    "core.views.eda",
    "core.views.registry",
    "core.workers.local",
)
HEAVY = ["torch", "umap", "numba", "transformers"]


def imports(path: Path) -> Iterator[str]:
    """Dotted names of everything that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(path.relative_to(ROOT).parts[: -node.level]) if node.level else ""
            module = ".".join(part for part in (package, node.module) if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def room_of(path: Path) -> str:
    inner = path.relative_to(ROOT / "core")
    return inner.parts[0] if len(inner.parts) > 1 else inner.stem


def is_allowed(room: str, imported: str) -> bool:
    inner = imported.removeprefix("core.")
    if inner.split(".")[0] in (room, "__version__", "messages"):
        return True
    return any(inner == allowed or inner.startswith(f"{allowed}.") for allowed in ALLOWED[room])


def offenders(paths: Sequence[Path], is_offence: Callable[[Path, str], bool]) -> list[str]:
    """Imports that break a rule, each with the file that has it."""
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


def test_of_loose_files_only_the_app_imports_streamlit() -> None:
    paths = [path for path in ROOT.glob("*.py") if path.name != "app.py"]
    assert all(not is_from(name, "streamlit") for path in paths for name in imports(path))


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
    assert not is_allowed("config", "core.training.prepare")
    assert is_allowed("config", "core.losses.registry.loss_entry")
    assert is_allowed("views", "core.encoders.topk_tokens.topk_token_views")
    assert is_allowed("training", "core.training.schedule.frame_steps")


def test_every_room_of_core_has_a_rule() -> None:
    assert {room_of(path) for path in CORE} <= ALLOWED.keys()


def test_no_two_modules_of_core_share_a_name() -> None:
    """Registries, what they hold, and a package's own entry points aside, a name leads to one module."""
    found = Counter(path.stem for path in CORE if path.stem not in ("__init__", "__main__", "entry", "registry"))
    assert [name for name, count in found.items() if count > 1] == []


def test_what_the_server_imports_leaves_the_heavy_libraries_alone() -> None:
    """One module after the other in one process: what a module loads stays, so that the first that loads is named."""
    code = f"""
import importlib, sys
for module in {LIGHT!r}:
    importlib.import_module(module)
    if heavy := [name for name in {HEAVY!r} if name in sys.modules]:
        sys.exit(f"{{module}} loads {{heavy}}")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
