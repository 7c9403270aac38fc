"""Dependencies point one way: every import is read, and one that runs back fails."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = sorted((ROOT / "core").rglob("*.py"))
APP = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))]

# What a part of core may import from the others; "losses.registry" allows that one module.
ALLOWED = {
    "errors": set[str](),
    "quantities": set[str](),
    "threads": set[str](),
    "parameters": {"errors", "quantities"},
    "validation": {"errors"},
    "terms": {"errors", "losses.registry", "parameters", "views.registry"},
    "objectives": {"errors", "losses.registry", "parameters", "terms", "validation"},
    "config": {"errors", "objectives", "validation"},
    "turns": {"config", "objectives"},
    "settings": {"errors"},
    "presets": {"errors", "losses.registry", "parameters"},
    "equation": {"losses.registry", "objectives", "parameters", "quantities", "terms"},
    "events": set[str](),
    "learning": {"config", "events", "quantities", "turns"},
    "newest_contrast": {"events", "objectives", "parameters", "representation", "terms"},
    "losses": {"errors", "parameters"},
    # Back-translation finds its models as encoders are found; an encoder picks the tokens that [CLS] attends to.
    "views": {"encoders.packing", "encoders.source", "errors", "parameters"},
    "encoders": {"config", "errors", "events", "quantities", "views.topk_tokens"},
    "representation": {"errors", "parameters", "quantities"},
    "figures": {"config", "errors", "events", "losses.registry", "quantities", "representation"},
    # Noise in a training text is a view of it that is made once.
    "tasks": {"config", "encoders.source", "errors", "quantities", "settings", "validation", "views.eda"},
    "jobs": {"errors", "store.liveness", "store.records", "threads"},
    "training": {
        "config",
        "encoders",
        "errors",
        "events",
        "learning",
        "losses",
        "objectives",
        "parameters",
        "quantities",
        "representation",
        "tasks",
        "terms",
        "turns",
        "views",
    },
    "store": {"config", "errors", "events", "representation", "settings"},
    "replay": {"config", "errors", "events", "learning", "representation", "store"},
    "engine": {
        "config",
        "encoders",
        "errors",
        "events",
        "representation",
        "settings",
        "store",
        "tasks",
        "threads",
        "training",
    },
    "analysis": {
        "config",
        "encoders",
        "engine.rows",
        "errors",
        "events",
        "jobs",
        "losses.law",
        "objectives",
        "parameters",
        "quantities",
        "representation",
        "settings",
        "store",
        "tasks",
        "terms",
        "training",
        "turns",
    },
    "comparison": {
        "config",
        "errors",
        "events",
        "objectives",
        "parameters",
        "presets",
        "representation",
        "terms",
        "turns",
        "validation",
    },
    "assign": {"config", "errors", "objectives", "presets", "validation"},
    "cli_options": {"tasks.files.problems"},
    "cli_tasks": {"cli_options", "config", "engine", "errors", "quantities", "store", "tasks", "validation"},
    "cli": {
        "assign",
        "cli_options",
        "cli_tasks",
        "config",
        "engine",
        "errors",
        "events",
        "learning",
        "objectives",
        "presets",
        "quantities",
        "replay",
        "settings",
        "store",
        "tasks",
        "training",
        "turns",
        "validation",
    },
    "__main__": {"cli"},
    "__init__": set[str](),
}
LIGHT = ["core.engine.local", "core.figures.map_data", "core.figures.curves", "core.training.prepare"]
LIGHT += [
    "core.training.estimate",
    "core.training.plan",
    "core.store",
    "core.config",
    "core.losses.registry",
]
LIGHT += ["core.analysis.sentence", "core.analysis.biography", "core.analysis.projector", "core.analysis.weights"]
LIGHT += ["core.comparison.offers", "core.comparison.seeds", "core.comparison.alignment", "core.figures.compare"]
LIGHT += ["core.figures.tokens", "core.figures.highlight", "core.turns"]
LIGHT += ["core.views.registry", "core.views.eda", "core.presets", "core.equation", "core.replay"]
LIGHT += ["core.learning", "core.newest_contrast", "core.representation.verdict"]
LIGHT += ["core.analysis.contrast", "core.losses.registry", "core.quantities", "core.training.pace"]
HEAVY = ["torch", "umap", "numba", "transformers"]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(path: Path) -> Iterator[str]:
    """Dotted names of everything that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(path.relative_to(ROOT).parts[: -node.level]) if node.level else ""
            module = ".".join(part for part in (package, node.module) if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def part_of(path: Path) -> str:
    inner = path.relative_to(ROOT / "core")
    return inner.parts[0] if len(inner.parts) > 1 else inner.stem


def is_allowed(part: str, imported: str) -> bool:
    inner = imported.removeprefix("core.")
    other = inner.split(".")[0]
    if other in (part, "__version__"):
        return True
    return any(inner == allowed or inner.startswith(f"{allowed}.") for allowed in ALLOWED[part])


@pytest.mark.parametrize("path", CORE, ids=named)
class TestCore:
    def test_it_imports_neither_streamlit_nor_pages(self, path: Path) -> None:
        roots = {name.split(".")[0] for name in imports(path)}
        assert not roots & {"streamlit", "pages", "app", "tests"}

    def test_it_imports_only_what_lies_below_it(self, path: Path) -> None:
        inside = {name for name in imports(path) if name.split(".")[0] == "core"}
        assert [name for name in sorted(inside) if not is_allowed(part_of(path), name)] == []


@pytest.mark.parametrize("path", [p for p in CORE if part_of(p) == "losses"], ids=named)
def test_losses_import_torch_and_nothing_else_from_outside(path: Path) -> None:
    roots = {name.split(".")[0] for name in imports(path)} - {"core"}
    assert roots - set(sys.stdlib_module_names) <= {"torch"}


@pytest.mark.parametrize("path", [p for p in CORE if part_of(p) in ("figures", "representation")], ids=named)
def test_figures_and_representation_take_arrays(path: Path) -> None:
    roots = {name.split(".")[0] for name in imports(path)}
    assert not roots & {"torch", "transformers", "plotly"}


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.py")) + CORE, ids=named)
def test_only_the_app_and_its_pages_import_streamlit(path: Path) -> None:
    assert path.name == "app.py" or "streamlit" not in {name.split(".")[0] for name in imports(path)}


@pytest.mark.parametrize("path", sorted((ROOT / "pages" / "ui").glob("*.py")), ids=named)
def test_pieces_of_pages_do_not_import_pages(path: Path) -> None:
    assert [name for name in imports(path) if name.startswith("pages.") and not name.startswith("pages.ui")] == []


@pytest.mark.parametrize("path", APP, ids=named)
def test_only_state_touches_session_state_and_the_address(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names = {name.split(".")[-1] for name in imports(path)}
    touched = (attributes | names) & {"session_state", "query_params"}
    assert not touched or path == ROOT / "pages" / "ui" / "state.py"


def test_the_rules_catch_an_arrow_that_runs_back() -> None:
    assert not is_allowed("losses", "core.training.loop.train")
    assert not is_allowed("store", "core.engine.LocalEngine")
    assert not is_allowed("config", "core.losses.supcon.supcon_loss")
    assert not is_allowed("figures", "core.store")
    assert not is_allowed("objectives", "core.losses.supcon.supcon_loss")
    assert not is_allowed("objectives", "core.config.RunConfig")
    assert not is_allowed("encoders", "core.views.clusters.cluster_views")
    assert not is_allowed("presets", "core.training.prepare")
    assert is_allowed("objectives", "core.losses.registry.loss_entry")
    assert is_allowed("encoders", "core.views.topk_tokens.topk_token_views")
    assert is_allowed("training", "core.training.schedule.frame_steps")


def test_every_part_of_core_has_a_rule() -> None:
    assert {part_of(path) for path in CORE} <= ALLOWED.keys()


@pytest.mark.parametrize("module", LIGHT)
def test_what_the_server_imports_leaves_the_heavy_libraries_alone(module: str) -> None:
    code = f"import sys, {module}; print(*(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
