"""The files sent to a node with a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.config import RunConfig
from core.workers.cluster.ray_cluster import models_of
from tests.core.views.test_back_translation import make_marian


@pytest.mark.parametrize("where", ["task", "view"])
def test_every_model_that_a_run_loads_goes_with_it(
    draft: Callable[..., RunConfig], tiny_encoder: Path, tmp_path: Path, where: str
) -> None:
    there, back = (str(make_marian(tmp_path / name, seed)) for seed, name in enumerate(("there", "back")))
    view = {"view": "back_translation", "forward": there, "backward": back}
    if where == "task":
        config = draft(task={"back_translation": 0.7, "translators": [there, back]})
    else:
        config = draft(objective={"terms": [{"loss": "supcon", "views": [view]}]})
    models = models_of(config)
    assert [*models] == [str(tiny_encoder), there, back]
    assert all({"config.json", "model.safetensors"} <= {*files} for files in models.values())


def test_a_run_that_translates_nothing_loads_its_encoder_alone(
    draft: Callable[..., RunConfig], tiny_encoder: Path
) -> None:
    assert [*models_of(draft())] == [str(tiny_encoder)]
