"""The Experiments page, without a browser: the list, the form, and the results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from core.config import ReadingConfig
from core.config.edit import apply_settings
from core.config.fields import build
from core.experiments.design import Design, axis_of, parse_design
from core.experiments.lifecycle import Experiments
from core.experiments.protocols.registry import PROTOCOLS
from core.experiments.report import report_html
from core.experiments.results import results
from core.experiments.surface import surface_design
from core.models import source
from core.store import ExperimentTable, Store, TaskLibrary
from core.tasks.load import read_rows_of
from core.workers import Jobs, LocalEngine
from core.workers.run_rows import TaskSource
from tests.cases import slow_but
from tests.conftest import made_rows
from tests.core.experiments.conftest import Here
from tests.core.experiments.instant import InstantEngine, ScoredEngine
from tests.core.training.made import scored_csv
from tests.pages.conftest import Draft, Pages
from tests.pages.test_data import links, own
from tests.pages.test_pages import button, metrics, progress, widget, words

# A protocol of classes, of epochs, of runs that start from others, of translations, and of scores.
KINDS = ("few-shot", "batch-size", "transfer", "back-translation", "similarity")


@pytest.fixture
def begun(folder: Path, draft: Draft) -> Callable[..., tuple[Here, str]]:
    """Return a function that makes an experiment with ended runs, whose scores depend on λ and the seed."""

    def begin(**fields: Any) -> tuple[Here, str]:
        here = Here(InstantEngine(Store(folder), probe_right=13))
        given: dict[str, Any] = {
            "name": "λ at work",
            "base": draft().model_dump(mode="json"),
            "axes": [{"setting": "lambda", "values": [0.1, 0.9]}],
            "seeds": 6,
            "baseline": {"Weight λ": "0.1"},
        }
        return here, here.begin(build(Design, given | fields))

    return begin


def cells(app: AppTest) -> list[list[dict[str, Any]]]:
    """Return the cells of the heat map, by row and column, as sent to the browser."""
    [table] = [one.proto for one in app.get("bidi_component") if one.proto.component_name == "cell_table"]
    found: list[list[dict[str, Any]]] = json.loads(table.json)["cells"]
    return found


class TestList:
    def test_without_experiments_it_says_what_one_is_and_offers_every_protocol(self, opened: Pages) -> None:
        app = opened("experiments")
        assert "One run is an anecdote" in words(app)
        for protocol in PROTOCOLS.values():
            assert protocol.question.rstrip("?") in words(app).replace("\\", "")
        assert button(app, "Set up a grid")

    def test_experiments_are_listed_with_how_far_they_are(self, opened: Pages, begun: Any) -> None:
        begun()
        [table] = opened("experiments").dataframe
        row = table.value.iloc[0]
        assert (row["Experiment"], row["Cells"], row["Seeds"], row["Finished"]) == ("λ at work", 2, 6, 100.0)
        assert row["Status"] == "finished"

    @pytest.mark.parametrize(("name", "kind"), [("experiment", "experiment"), ("new", "protocol"), ("surface", "task")])
    def test_an_unknown_name_in_its_address_is_reported(self, opened: Pages, name: str, kind: str) -> None:
        assert f"there is no such {kind}" in words(opened("experiments", **{name: "nonsense"}))


class TestSurface:
    def test_one_press_begins_nine_cells_on_the_last_block(self, opened: Pages, folder: Path) -> None:
        app = opened("experiments")
        widget(app, "surface.start").click().run()
        [experiment] = ExperimentTable(folder).experiments()
        assert app.query_params["experiment"] == experiment.id
        runs = [run for run in Store(folder).runs() if run.of_experiment]
        assert len(runs) == 9
        assert {(run.config.executor, run.config.phases[0].trainable.blocks) for run in runs} == {("surface", 1)}
        assert "Each cell trains the last block of the encoder for 24 steps on 300 texts" in words(app)
        assert "The maps appear when every cell has taken its first step." in words(app)

    def test_an_own_task_is_chosen_by_the_address_and_gets_two_seeds(self, opened: Pages, folder: Path) -> None:
        task = own(TaskLibrary(folder), made_rows(60))
        app = opened("experiments", surface=task.id)
        assert widget(app, f"surface.task.{task.id}").value == task.id
        widget(app, "surface.start").click().run()
        [experiment] = ExperimentTable(folder).experiments()
        design = parse_design(experiment.design)
        assert (design.base.task.id, design.seeds, len(design.cells)) == (task.id, (0, 1), 9)
        assert "surface" not in app.query_params

    def test_any_two_settings_of_a_grid_can_train_at_once(self, opened: Pages, folder: Path) -> None:
        grid = {"x": "phases.0.objective.lambda", "xs": "0.2,0.4", "y": "phases.0.batch_size", "ys": "8,16"}
        app = opened("experiments", new="grid", seeds="1", at_once="on", **grid)
        assert metrics(app)["New runs"] == "4"
        button(app, "Start the experiment").click().run()
        runs = [run for run in Store(folder).runs() if run.of_experiment]
        assert {(run.config.executor, run.config.phases[0].batch_size) for run in runs} == {
            ("surface", 8),
            ("surface", 16),
        }

    def test_a_protocol_can_be_tried_with_one_seed_at_once(self, opened: Pages, folder: Path) -> None:
        """Only trained blocks tell layers apart, so all of them are trained."""
        app = opened("experiments", new="layers", at_once="on")
        button(app, "Start the experiment").click().run()
        runs = [run for run in Store(folder).runs() if run.of_experiment]
        trained = {(run.config.executor, run.config.phases[0].trainable.blocks, run.config.seed) for run in runs}
        assert (len(runs), trained) == (13, {("surface", 6, 0)})
        assert "Each cell trains all blocks of the encoder for 24 steps" in words(app)
        assert parse_design(ExperimentTable(folder).experiments()[0].design).protocol == "layers"
        [switch] = [one for one in opened("experiments", new="few-shot").toggle if one.label.startswith("Train all")]
        assert switch.disabled
        assert "Training rows = '20' cannot be used" in switch.help

    def test_an_axis_without_levels_is_refused_before_the_start(self, opened: Pages, folder: Path) -> None:
        app = opened("experiments", new="layers", at_once="on")
        widget(app, "experiment.layers.Level").set_value([]).run()
        assert button(app, "Start the experiment").disabled
        assert ExperimentTable(folder).experiments() == []

    def test_the_visitor_predicts_the_best_cell_and_sees_how_it_did(
        self, opened: Pages, folder: Path, draft: Draft
    ) -> None:
        base = apply_settings(draft(), {"preset": "ce-scl"})
        axes = [axis_of("temperature", [0.1, 0.5], base), axis_of("lambda", [0.2, 0.8], base)]
        design = surface_design(base, TaskSource(folder)(base.task, 0), axes)
        engine = ScoredEngine(Store(folder), lambda config: 10 + round(10 * (config.phases[0].objective.weight or 0)))
        engine.holding = True
        experiment_id = Experiments(engine).begin(design)
        app = opened("experiments", experiment=experiment_id)
        assert "Which cell do you expect to be the best in the end?" in words(app)
        app.query_params["expected"] = "2"
        assert cells(app.run())[1][0]["chosen"]
        engine.holding = False
        engine.dispatch()
        said = words(app.run()).replace("\\", "")
        assert "You expected τ 0.5, λ 0.2: 60.0%. The best cell is τ 0.1, λ 0.8: 90.0%." in said
        assert "Which cell do you expect" not in said

    def test_a_cell_is_trained_in_full(self, opened: Pages, folder: Path) -> None:
        app = opened("experiments")
        widget(app, "surface.start").click().run()
        app.query_params["cell"] = "5"
        app.run()
        widget(app, "surface.full").click().run()
        [full] = [run for run in Store(folder).runs() if run.config.executor == "full"]
        objective = full.config.phases[0].objective
        assert (objective.temperature, objective.weight) == (0.2, 0.9)
        assert full.config.phases[0].trainable.part == "all"
        assert full.config.task.train_size is None


class TestSetUp:
    @pytest.mark.parametrize("name", slow_but(("few-shot",), KINDS))
    def test_a_protocol_of_each_kind_says_what_it_will_take(
        self, opened: Pages, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(source, "hub_answers", lambda: True)
        app = opened("experiments", new=name)
        if name == "similarity":  # no bundled task has scores
            [error] = app.error
            assert "has no similarity scores; choose a task of scored pairs, such as STS" in error.value
            return
        assert not app.error
        assert metrics(app)["New runs"] == str(PROTOCOLS[name].design().runs)
        assert not button(app, "Start the experiment").disabled

    def test_a_protocol_without_its_translation_models_cannot_be_started(
        self, opened: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(source, "hub_answers", lambda: False)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
        app = opened("experiments", new="back-translation")
        assert ["use the bundled paraphrases instead" in error.value for error in app.error] == [True]
        assert button(app, "Start the experiment").disabled

    def test_the_protocol_of_scores_offers_tasks_with_scores(self, opened: Pages, folder: Path, tmp_path: Path) -> None:
        rows, _ = read_rows_of((scored_csv(tmp_path / "scored.csv", 100),), ReadingConfig(), ())
        task = TaskLibrary(folder).add(rows, name="Alike", source="scored.csv.")
        app = opened("experiments", new="similarity")
        assert not app.error
        assert metrics(app)["New runs"] == str(PROTOCOLS["similarity"].design().runs)
        button(app, "Start the experiment").click().run()
        [experiment] = ExperimentTable(folder).experiments()
        assert parse_design(experiment.design).base.task.id == task.id
        assert experiment.title.startswith("Similarity scores")
        assert app.query_params["experiment"] == experiment.id
        assert "new" not in app.query_params

    def test_levels_that_are_left_out_are_not_run_but_the_baseline_is(self, opened: Pages) -> None:
        app = opened("experiments", new="few-shot")
        widget(app, "experiment.few-shot.Training rows").set_value(["20"]).run()
        widget(app, "experiment.few-shot.Objective").set_value(["CE + SCL"]).run()
        assert metrics(app)["New runs"] == "16"

    def test_so_few_seeds_are_said_to_show_nothing(self, opened: Pages) -> None:
        app = opened("experiments", new="few-shot", seeds="5")
        assert "no difference can be significant at the 5% level" in words(app)
        widget(app, "experiment.seeds.few-shot").set_value(8).run()
        assert "no difference can be significant" not in words(app)
        assert metrics(app)["New runs"] == "72"

    def test_a_first_look_starts_every_cell_with_one_seed(self, opened: Pages, folder: Path) -> None:
        app = opened("experiments", new="clusters")
        widget(app, "experiment.one_seed").click().run()
        [experiment] = ExperimentTable(folder).experiments()
        design = parse_design(experiment.design)
        assert (design.seeds, len(design.cells)) == ((0,), 4)  # three numbers of clusters, and CE

    def test_layers_are_varied_by_thirds_and_by_number(self, opened: Pages, folder: Path) -> None:
        layers = "phases.0.objective.terms.supcon.layers"
        app = opened("experiments", new="grid", x=layers, seeds="1")
        [values] = [one for one in app.multiselect if one.key == f"experiment.values.{layers}"]
        assert values.value == ["first_third", "middle_third", "last_third"]
        assert {"All", "Embeddings", "6"} <= set(values.options)
        app = opened("experiments", new="grid", x=layers, xs="first_third,3,2 5", seeds="1")
        button(app, "Start the experiment").click().run()
        runs = [run for run in Store(folder).runs() if run.of_experiment]
        design = parse_design(ExperimentTable(folder).experiments()[0].design)
        assert [level.title for level in design.axes[0].levels] == ["First third", "3", "2, 5"]
        [contrast] = {term.layers for term in runs[0].config.phases[0].objective.terms if term.entry.contrastive}
        assert contrast == "first_third"

    def test_what_is_varied_is_not_said_to_be_fixed(self, opened: Pages) -> None:
        tau = "phases.0.objective.terms.supcon.temperature"
        app = opened("experiments", new="grid", x="phases.0.objective.lambda", xs="0.2,0.4", y=tau, ys="0.1,0.3")
        text = words(app).replace("\\", "")
        assert "· CE + SCL. Other settings are taken from Fine-tune." in text
        button(app, "Start the experiment").click().run()
        assert "· CE + SCL · 120 steps; varied: weight λ, temperature τ." in words(app).replace("\\", "")

    def test_typed_values_are_checked(self, opened: Pages) -> None:
        app = opened("experiments", new="grid", x="phases.0.objective.lambda", xs="0.2,much")
        said = words(app).replace("\\", "")
        assert "Weight λ" in said
        assert "much" in said
        assert widget(app, "experiment.seeds.grid")  # the rest of the form remains
        assert button(app, "Start the experiment").disabled

    def test_poor_runs_can_be_ended_early(self, opened: Pages, folder: Path, monkeypatch: Any) -> None:
        app = opened("experiments", new="grid", x="phases.0.objective.lambda", xs="0.2,0.4", seeds="1", early="on")
        assert not app.error
        widget(app, "experiment.grace_steps").set_value(30).run()
        assert widget(app, "experiment.reduction").value == 3
        begun: list[Design] = []
        monkeypatch.setattr(
            "core.experiments.lifecycle.Experiments.begin", lambda _, design, owner: begun.append(design) or "x" * 12
        )
        button(app, "Start the experiment").click().run()
        [design] = begun
        assert design.early_stopping is not None
        assert (design.early_stopping.grace_steps, design.early_stopping.reduction) == (30, 3)
        assert design.draft(design.cells[0], 0).probe.frame_steps == (30, 90)

    @pytest.mark.parametrize(("name", "text"), [("seeds", "many"), ("steps", "-3")])
    def test_nonsense_in_its_address_is_said(self, opened: Pages, name: str, text: str) -> None:
        app = opened("experiments", new="grid", **{name: text})
        said = [one.value for one in app.warning if f"asks for {name} = " in one.value]
        assert any(f"this number of {name} is out of range" in one for one in said)
        assert metrics(app)["New runs"] == "15"
        assert name not in app.query_params

    def test_a_cell_that_does_not_apply_is_said_before_launch(self, opened: Pages) -> None:
        app = opened(
            "experiments",
            new="grid",
            x="preset",
            xs="ce,ce-scl",
            y="phases.0.objective.terms.supcon.temperature",
            ys="0.1,0.3",
        )
        assert any("left out" in warning.value for warning in app.warning)
        assert metrics(app)["New runs"] == "10"


class TestView:
    def test_it_says_how_far_it_is_and_tests_a_cell_over_seeds_and_a_pair_of_runs_over_examples(
        self, opened: Pages, begun: Any
    ) -> None:
        _, experiment_id = begun()
        app = opened("experiments", experiment=experiment_id, cell="1")
        text = words(app).replace("\\", "")
        assert "12 of 12 runs finished" in text
        assert "λ 0.9: 75.0 ± 4.5% over 6 seeds." in text
        assert "Higher. Seeds needed: enough." in text
        assert "p 0.031 over seeds (Holm)" in text
        # Under seed 0, 14 and 10 of 20 are right, with 10 in common: two splits of 4 are as uneven as 4 to 0.
        assert "significant on the test texts" in text
        assert "“λ 0.9” is right on 70.0% of 20 texts, “λ 0.1” on 50.0%." in text
        assert f"p = {2 / 2**4:.3g}" in text

    @pytest.mark.parametrize("show", ["map", "chart", "table", "report"])
    def test_every_view_shows_the_scores_of_the_probe_and_the_majority_class(
        self, opened: Pages, begun: Any, show: str
    ) -> None:
        here, experiment_id = begun()
        app = opened("experiments", experiment=experiment_id, show=show)
        if show == "report":
            experiment = here.table.experiment(experiment_id)
            found = results(
                here.engine.store, experiment.id, here.design(experiment_id), measure="accuracy", split="test"
            )
            text = report_html(experiment, found)
        else:
            text = words(app).replace("\\", "")
        assert "Test accuracy of the linear probe of the encoder before training, mean over seeds: 65.0%." in text
        assert "Test accuracy of the majority class: 50.0%." in text
        assert "Cells whose mean is below the probe before training: λ 0.1 (55.0 ± 4.5% against 65.0%)." in text
        assert "Means by weight λ: 55.0% for 0.1; 75.0% for 0.9 (over seeds)." in text
        assert not app.error
        if show == "table":
            assert list(app.dataframe[0].value["Verdict"]) == ["–", "higher"]

    def test_the_chart_has_accuracy_and_separation_over_one_setting(self, opened: Pages, begun: Any) -> None:
        here, experiment_id = begun(seeds=1)
        app = opened("experiments", experiment=experiment_id, show="chart")
        assert [job.kind for job in Jobs(here.engine.store.folder).jobs()] == ["vectors"]
        app = opened("experiments", experiment=experiment_id, show="chart", measure="silhouette")
        assert "There is no validation silhouette yet." in words(app)

    def test_head_and_tail_can_be_compared_if_classes_are_imbalanced(self, opened: Pages, begun: Any) -> None:
        axes = [{"setting": "task.imbalance", "values": [1, 4]}, {"setting": "lambda", "values": [0.1, 0.9]}]
        _here, even = begun()
        [measures] = [box for box in opened("experiments", experiment=even).selectbox if box.label == "Measure"]
        assert "Recall of the tail" not in measures.options
        _here, thinned = begun(axes=axes, seeds=2)
        app = opened("experiments", experiment=thinned, measure="tail_recall", show="table")
        [table] = [one.value for one in app.dataframe if "Test recall of the tail" in one.value]
        # The first 10 or 11 of 20 alternating labels are predicted right, or four more.
        assert list(table["Test recall of the tail"]) == ["50.0 ± 0.0%", "70.0 ± 0.0%"] * 2

    def test_the_lower_of_two_cross_entropies_is_the_stronger_blue(self, opened: Pages, begun: Any) -> None:
        _, experiment_id = begun(seeds=1, baseline={})
        for measure in ("accuracy", "cross_entropy"):
            drawn = cells(opened("experiments", experiment=experiment_id, measure=measure))
            assert [line[0]["strength"] for line in drawn] == [0.0, 1.0]  # λ 0.9 is better in both

    def test_a_mean_below_that_of_the_probe_is_no_verdict(self, opened: Pages, begun: Any) -> None:
        _, experiment_id = begun(seeds=2)
        app = opened("experiments", experiment=experiment_id, cell="0")
        text = words(app).replace("\\", "")
        assert "no difference can be significant" in text
        assert "worth training" not in text
        assert "Baselines (mean over seeds): linear probe of the encoder before training 65.0%," in text
        assert cells(app)[0][0]["note"] == "baseline · below probe"

    def test_a_cell_waits_for_a_baseline_without_a_score(self, opened: Pages, begun: Any) -> None:
        here, experiment_id = begun(seeds=2)
        for run in here.table.runs(experiment_id):
            if run.cell == 0 or run.seed == 1:
                here.engine.store.discard(str(run.run_id))
        drawn = cells(opened("experiments", experiment=experiment_id))
        assert [line[0]["note"] for line in drawn] == ["0 of 2", "waiting for baseline · 1 of 2"]

    @pytest.mark.parametrize("show", ["map", "table"])
    def test_runs_that_score_alike_have_no_difference(self, opened: Pages, begun: Any, show: str) -> None:
        _, experiment_id = begun(axes=[{"setting": "lambda", "values": [0.1, 0.2]}], seeds=2)  # with equal scores
        app = opened("experiments", experiment=experiment_id, show=show, cell="1")
        text = words(app).replace("\\", "")
        if show == "map":
            assert "No difference from λ 0.1, over 2 seeds in common." in text
            assert "1,000" not in text
            assert "0.0 to 0.0" not in text
        else:
            row = app.dataframe[0].value.iloc[1]
            assert (row["Difference"], row["95% interval"], row["Seeds needed"]) == ("0.0", "–", "–")

    def test_a_stopped_experiment_is_resumed(self, opened: Pages, begun: Any, folder: Path) -> None:
        here, experiment_id = begun()
        here.engine.holding = True
        here.add_seeds(experiment_id, 1)
        app = opened("experiments", experiment=experiment_id)
        button(app, "Stop").click().run()
        assert not ExperimentTable(folder).is_wanted(experiment_id)
        button(app, "Resume").click().run()
        assert ExperimentTable(folder).is_wanted(experiment_id)

    def test_a_deleted_experiment_comes_back_with_an_undo(self, opened: Pages, begun: Any, folder: Path) -> None:
        _, experiment_id = begun()
        app = opened("experiments", experiment=experiment_id)
        button(app, "Delete").click().run()
        assert ExperimentTable(folder).experiments() == []
        assert len(Store(folder).runs()) == 12
        # Stored, so another session offers it as well.
        again = opened("experiments")
        assert "its runs are kept. You can undo this for 10 minutes." in " ".join(text.value for text in again.markdown)
        button(again, "Undo").click().run()
        assert not again.exception
        assert [one.id for one in ExperimentTable(folder).experiments()] == [experiment_id]

    def test_a_reason_for_missing_runs_is_said_once(self, opened: Pages, begun: Any) -> None:
        axes = [{"setting": "preset", "values": ["ce", "ce-scl"]}, {"setting": "temperature", "values": [0.1]}]
        _, experiment_id = begun(axes=axes, baseline={}, seeds=3)
        [warning] = opened("experiments", experiment=experiment_id).warning
        text = warning.value.replace("\\", "")
        assert "CE, τ 0.1, seed 0 and 2 more:" in text
        assert "no contrastive loss" in text

    def test_hostile_names_are_text(self, opened: Pages, begun: Any) -> None:
        _, experiment_id = begun(name="<b>**x**</b> $y$")
        app = opened("experiments", experiment=experiment_id)
        assert any(header.value == "\\<b\\>\\*\\*x\\*\\*\\</b\\> \\$y\\$" for header in app.header)


def test_a_grid_from_the_form_keeps_an_own_task_its_rows_and_its_name(opened: Pages, folder: Path) -> None:
    task = own(TaskLibrary(folder), made_rows(60))
    form = opened("fine_tune", task=task.id)
    widget(form, "form.train_size").set_value(20).run()
    query = parse_qs(links(form)["Set up a grid"])
    grid = opened("experiments", seeds="1", **query)
    assert "Mine · Training rows: 20 · 0.1 CE" in words(grid).replace("\\", "")
    assert parse_qs(links(grid)["Change the other settings"])["task"] == [task.id]
    button(grid, "Start the experiment").click().run()
    [experiment] = ExperimentTable(folder).experiments()
    base = build(Design, json.loads(experiment.design)).base
    assert (base.task.id, base.task.train_size, base.task.name) == (task.id, 20, "Mine")
    assert experiment.title == "Temperature τ, Mine"
    TaskLibrary(folder).delete(task.id)
    shown = words(opened("experiments", experiment=experiment.id)).replace("\\", "")
    assert "Mine · Training rows: 20 · " in shown
    assert task.id not in shown


def test_a_grid_comes_back_from_the_form_as_it_was(opened: Pages) -> None:
    grid = {
        "x": "phases.0.objective.lambda",
        "xs": "0.2,0.4",
        "y": "phases.0.batch_size",
        "ys": "8,16",
        "against": "0.1",
        "frames": "on",
    }
    app = opened("experiments", new="grid", **grid)
    widget(app, "experiment.seeds.grid").set_value(2).run()
    follow(app, "Change the other settings", "fine_tune")
    widget(app, "form.train_size").set_value(20).run()
    follow(app, "Set up a grid", "experiments")
    wanted = {**grid, "seeds": "2", "new": "grid"}
    assert {name: app.query_params.get(name) for name in wanted} == wanted
    assert "Training rows: 20" in words(app).replace("\\", "")
    assert metrics(app)["New runs"] == "8"
    follow(app, "Change the other settings", "fine_tune")
    button(app, "Launch").click().run()
    assert app.query_params.keys() == {"run"}


def follow(app: AppTest, label: str, page: str) -> None:
    """Follow a link, as a browser does."""
    query = parse_qs(links(app)[label])
    app.query_params.clear()
    app.query_params.update(query)
    app.switch_page(f"pages/{page}.py").run()
    assert not app.exception


def test_seeds_from_the_form_are_called_by_the_name_of_an_own_task(opened: Pages, folder: Path) -> None:
    task = own(TaskLibrary(folder), made_rows(60))
    button(opened("fine_tune", task=task.id), "Run with 5 seeds").click().run()
    [experiment] = ExperimentTable(folder).experiments()
    assert experiment.title.endswith(", Mine")
    assert build(Design, json.loads(experiment.design)).seeds == (0, 1, 2, 3, 4)


def test_compare_says_whether_two_ways_differ_by_more_than_chance(opened: Pages, begun: Any) -> None:
    here, experiment_id = begun(seeds=3)
    runs = ",".join(str(run.run_id) for run in here.table.runs(experiment_id))
    app = opened("compare", runs=runs, show="scores")
    table = next(frame.value for frame in app.dataframe if "Verdict" in frame.value)
    assert list(table["Difference"]) == ["baseline", "+20.0"]
    assert list(table["Verdict"]) == ["–", "no difference shown"]


def test_runs_of_one_seed_are_tested_over_examples_alone(opened: Pages, begun: Any) -> None:
    here, experiment_id = begun(seeds=1)
    runs = ",".join(str(run.run_id) for run in here.table.runs(experiment_id))
    app = opened("compare", runs=runs, show="scores")
    assert all("Verdict" not in frame.value for frame in app.dataframe)
    text = words(app).replace("\\", "")
    assert "Is the difference between two runs significant on the test texts?" in text
    assert "seed 0” is right on 50.0% of 20 texts" in text
    assert "This says nothing about other seeds." in text
    assert "Significance over seeds" not in text


def test_runs_of_experiments_are_listed_on_demand(opened: Pages, begun: Any) -> None:
    here, _ = begun(seeds=2)
    assert "Recent runs" not in words(opened("home"))
    app = opened("runs")
    assert "No run matches" in words(app)
    widget(app, next(one.key for one in app.toggle)).set_value(True).run()
    assert len(app.dataframe[0].value) == 4
    by_hand = here.engine.submit(apply_settings(here.design(here.table.experiments()[0].id).base, {"steps": 3}))
    [row] = opened("runs").dataframe[0].value["Run"]
    assert row == here.engine.store.run(by_hand).title


def test_the_time_left_counts_the_runs_that_go_first(opened: Pages, folder: Path, draft: Draft) -> None:
    store = Store(folder)
    engine = LocalEngine(store, slots=range(0))
    experiments = Experiments(engine)
    design = build(Design, {"base": draft(steps=10).model_dump(mode="json"), "seeds": 3})
    experiment = experiments.begin(design)
    for seed in (1, 2):
        config, data = engine.prepared(design.draft(design.cells[0], seed))
        engine.queue(config, data, (experiment, design.cells[0].number, seed))
    [first] = [run.run_id for run in experiments.table.runs(experiment) if run.seed == 0]
    assert first is not None
    with store.transaction() as db:  # 10 steps took 30 s
        db.execute("UPDATE runs SET last_step = 10, worked_s = 30 WHERE id = ?", (first,))
        db.execute("UPDATE work SET status = 'finished' WHERE id = ?", (first,))
    assert "2 waiting · about 1 min left" in progress(opened("experiments", experiment=experiment))
    for seed in (7, 8):
        store.create(engine.prepared(draft(steps=10, more={"seed": seed}))[0])
    said = progress(opened("experiments", experiment=experiment))
    assert "2 waiting · 2 other runs start first · about 2 min left" in said
