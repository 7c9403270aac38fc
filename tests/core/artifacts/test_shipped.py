"""The bundled replays: their contents, and their reproduction from their configs."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from core.advice.prepare import prepare
from core.artifacts import replay_file
from core.artifacts.replay import open_replay, read_replay
from core.artifacts.shipped import FOLDER, SHIPPED, draft_of, main, make
from core.config import RunConfig
from core.errors import PlaygroundError
from core.store import Status, Store
from tests.core.artifacts.made import MORE

BYTES_MAX = 1_500_000


def test_nothing_else_lies_there() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {
        f"{name}.{kind}" for name in SHIPPED for kind in ("json", "zip")
    }


@pytest.mark.parametrize("name", SHIPPED)
class TestEach:
    def test_it_is_small_and_opens_and_is_what_its_config_gives(self, name: str, store: Store) -> None:
        assert SHIPPED[name].path.stat().st_size <= BYTES_MAX
        run = store.run(open_replay(store, SHIPPED[name].path))
        assert (run.title, run.status) == (SHIPPED[name].label, Status.FINISHED)
        assert run.config.task.id == "film_reviews"
        assert store.predictions(run.id) is not None
        made, _ = prepare(draft_of(SHIPPED[name]), gpu=False, bfloat16=True)
        assert replay_file.read(SHIPPED[name].path).config == made

    def test_it_has_a_map_and_numbers_of_its_vectors_and_logits_at_every_frame(self, name: str) -> None:
        replay, arrays = read_replay(SHIPPED[name].path), replay_file.read(SHIPPED[name].path).arrays
        points = len(replay.probe.ids)
        assert len(replay.steps) == len(replay.maps) == len(replay.scores) > 10
        assert all(frame.shape == (points, 2) for frame in replay.maps)
        assert None not in replay.scores
        assert replay.steps[0] == 0
        assert replay.steps[-1] == replay.config.steps
        labels = replay.probe.labels[: replay.probe.held_out]
        for step, score, separation in zip(replay.steps, replay.scores, replay.separations, strict=True):
            vectors = [row / np.linalg.norm(row) for row in arrays[f"embeddings.{step}"].astype(float)[: len(labels)]]
            of_class = {c: [z for z, label in zip(vectors, labels, strict=True) if label == c] for c in set(labels)}
            means = {c: sum(rows) / len(rows) for c, rows in of_class.items()}
            middle = sum(vectors) / len(vectors)
            within = sum(((z - means[label]) ** 2).sum() for z, label in zip(vectors, labels, strict=True))
            between = sum(((means[label] - middle) ** 2).sum() for label in labels)
            assert separation == pytest.approx(within / between, rel=1e-6)
            right = (arrays[f"logits.{step}"][: len(labels)].argmax(1) == labels).mean()
            assert score is not None
            assert score.values["accuracy"] == pytest.approx(right, abs=1e-6)


def test_they_differ_in_their_objective_alone() -> None:
    first = read_replay(SHIPPED["ce"].path)
    first_vectors = replay_file.read(SHIPPED["ce"].path).arrays["embeddings.0"].astype(np.float32)
    for name in SHIPPED:
        replay = read_replay(SHIPPED[name].path)
        assert replay.probe == first.probe
        assert replay.steps == first.steps
        untrained = replay_file.read(SHIPPED[name].path).arrays["embeddings.0"].astype(np.float32)
        np.testing.assert_allclose(untrained, first_vectors, rtol=0, atol=0.02, equal_nan=False)  # in bfloat16
        assert replay.config.model_copy(update={"phases": (), "name": ""}) == first.config.model_copy(
            update={"phases": (), "name": ""}
        )


class TestWhatTheyShow:
    """Statements about the replays, checked against their numbers."""

    def test_cosines_accuracies_and_a_contrast_between_tokens(self) -> None:
        scores = {name: [one.values for one in read_replay(SHIPPED[name].path).scores if one] for name in SHIPPED}
        last = {name: of_run[-1] for name, of_run in scores.items()}
        assert all(last[name]["accuracy"] > 0.85 for name in {*SHIPPED} - {"collapsed"})
        assert last["ce-scl-sharp"]["mean_cosine"] > last["ce-scl"]["mean_cosine"] + 0.4
        assert last["ce-scl"]["within_cosine"] > last["ce"]["within_cosine"] + 0.05
        assert last["ce"]["between_cosine"] < scores["ce"][0]["between_cosine"] - 0.3
        assert last["collapsed"]["mean_cosine"] == pytest.approx(1, abs=1e-2)
        levels = [term.level for term in read_replay(SHIPPED["token-scl"].path).config.phases[0].objective.terms]
        assert levels.count("token") == 1

    def test_r_drop_adds_how_far_the_two_answers_part(self) -> None:
        alpha = read_replay(SHIPPED["r-drop"].path).config.phases[0].objective.terms[0].parameters["alpha"]
        for step in replay_file.read(SHIPPED["r-drop"].path).run.steps:
            ce, kl = step.values["loss.rdrop.ce"], step.values["loss.rdrop.kl"]
            assert kl > 0
            assert step.values["loss.rdrop"] == pytest.approx(ce + float(str(alpha)) * kl, rel=1e-4)

    def test_the_collapsed_one_rests_on_its_line(self) -> None:
        run = replay_file.read(SHIPPED["collapsed"].path).run
        above = [step.values["loss"] - step.values["collapse_line.supcon"] for step in run.steps[30:]]
        assert median(above) == pytest.approx(0, abs=1e-3)
        assert median(map(abs, above)) < 1e-3  # the rate is so high that single batches still deviate
        assert run.steps[-1].values["collapse_line.supcon"] == pytest.approx(math.log(15), rel=1e-5)


@pytest.mark.slow
def test_one_is_made_again_from_its_draft(draft: Callable[..., RunConfig], tmp_path: Path) -> None:
    config = draft(more=MORE | {"name": "Tiny"})
    for name in ("one.zip", "two.zip"):
        make(config, tmp_path / name)
    one, two = (replay_file.read(tmp_path / name) for name in ("one.zip", "two.zip"))
    assert one.run.title == "Tiny"
    assert one.run.frames == two.run.frames == tuple(MORE["probe"]["frame_steps"])
    assert set(one.arrays) == set(two.arrays)
    assert all(np.array_equal(array, two.arrays[name]) for name, array in one.arrays.items())
    losses = [[step.values["loss"] for step in made.run.steps] for made in (one, two)]
    assert losses[0] == losses[1]


def test_a_run_that_fails_writes_nothing(draft: Callable[..., RunConfig], tmp_path: Path) -> None:
    config = draft(more=MORE)
    broken = config.model_copy(update={"task": config.task.model_copy(update={"path": str(tmp_path / "gone.csv")})})
    with pytest.raises(PlaygroundError, match=r"gone\.csv"):
        make(broken, tmp_path / "replay.zip")
    assert [*tmp_path.iterdir()] == []


def test_a_name_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == 2
    assert "nonsense is not a replay of the project: choose ce-scl, ce" in capsys.readouterr().err
