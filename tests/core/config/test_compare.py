"""Comparison of runs: differences with one value per run, config hashes, and comparable losses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from core.advice.prepare import prepare
from core.config import RunConfig, parse_config
from core.config.compare import config_differences, config_hash, same_loss
from core.config.edit import apply_settings
from core.config.presets import PRESETS
from tests.cases import each
from tests.core.config.made import CE, DROPOUT, SCL, Turn, turned

ALONE = {"terms": [CE]}
HOSTILE = "<img src=x onerror=alert(1)>" * 2


def run(**given: Any) -> RunConfig:
    return parse_config(given)


def phase(**given: Any) -> RunConfig:
    return run(phases=[given])


def mix(weight: float = 0.9, combine: str = "convex", **scl: Any) -> dict[str, Any]:
    ce = 1.0 if combine == "additive" else round(1 - weight, 12)
    terms = [{"loss": "supcon", "weight": weight, **scl}, {"loss": "cross_entropy", "weight": ce}]
    return {"terms": terms, "combine": combine}


def diff(*configs: RunConfig) -> dict[str, tuple[str, ...]]:
    """Return values by label, and check that labels are unique."""
    found = config_differences(configs)
    labels = {difference.label: difference.values for difference in found}
    assert len(labels) == len(found)
    return labels


@each("name", PRESETS)
def test_the_same_config_twice_differs_in_nothing(name: str) -> None:
    config = parse_config({"phases": PRESETS[name].phases({"steps": 20})})
    assert config_differences([config, config, parse_config(config.to_json())]) == ()


def additive(*terms: dict[str, Any], turns: Sequence[Turn] = (), **phase: Any) -> RunConfig:
    objective = {"terms": list(terms), "combine": "additive"}
    return turned(*turns, phases=[{"objective": objective, "steps": 10} | phase])


def translated(second: float) -> RunConfig:
    return phase(
        objective=mix(views=[{"view": "back_translation"}, {"view": "back_translation", "temperature": second}])
    )


def of_file(content: str | None, seed: int = 0, **task: Any) -> RunConfig:
    """Return a run on a file whose rows have a content hash of 64 times this letter."""
    return run(seed=seed, task={"id": "file", "path": "/x/a.csv", "content_hash": content and content * 64} | task)


TWO = run(phases=[{"steps": 10}, {"steps": 5, "objective": ALONE}])
SIMCSE_FIRST = [{"steps": 5, "objective": {"terms": [{"loss": "simcse", "views": DROPOUT}]}}, {"steps": 5}]
READ = {"reading": {"text": "review"}}


@each(
    ("one", "other", "differences"),
    [
        (run(seed=0), run(seed=12_345), {"Seed": ("0", "12345")}),
        (run(device="cpu"), run(device="cuda"), {"Device": ("CPU", "CUDA")}),
        (run(encoder={"max_length": 2048}), run(), {"Maximum tokens": ("2,048", "128")}),
        (run(task={"label_noise": 0.1}), run(), {"Label noise ρ": ("0.1", "0")}),
        (phase(optimiser={"learning_rate": 2e-4}), run(), {"Learning rate": ("2e-04", "The default")}),
        (phase(micro_batch=4), run(), {"Micro-batch": ("4", "The whole batch")}),
        (phase(objective=mix(layers=[4, 2])), run(), {"Layers of SCL": ("2, 4", "Last")}),
        (
            phase(objective=mix(views=DROPOUT)),
            run(),
            {"Views of SCL": ("Include the text itself, Second dropout pass", "Include the text itself")},
        ),
        # Settings without effect.
        (run(name="first"), run(name="second"), {}),
        (run(checkpoint={"every_steps": 5}), run(), {}),
        (phase(objective=ALONE | {"combine": "additive"}), phase(objective=ALONE), {}),
        (phase(objective=mix() | {"terms": mix()["terms"][::-1]}), run(), {}),  # the order of the terms
        (phase(objective=mix(k=60)), run(), {}),  # no token level
        (phase(objective=mix(momentum=0.9)), run(), {}),  # no queue
        (phase(trainable={"blocks": 4}), run(), {}),  # all weights learn
        (phase(micro_batch=64), run(), {}),  # the batch is smaller
        # A run without a term or a phase has a dash for the settings that make it.
        (
            phase(objective=ALONE),
            run(),
            {
                "Losses": ("CE", "CE + SCL"),
                "Weight of CE": ("1", "0.1"),
                "Weight of SCL": ("–", "0.9"),
                "Temperature τ of SCL": ("–", "0.3"),
            },
        ),
        (
            phase(steps=10),
            TWO,
            {
                "Phases": ("1", "2"),
                "Phase 2: Losses": ("–", "CE"),
                "Phase 2: Trained weights": ("–", "All weights"),
                "Phase 2: Learning rate": ("–", "The default"),
                "Phase 2: Steps": ("–", "5"),
                "Phase 2: Batch size": ("–", "16"),
            },
        ),
        (
            TWO,
            TWO.model_copy(update={"phases": (phase(steps=20).phases[0], TWO.phases[1])}),
            {"Phase 1: Steps": ("10", "20")},
        ),
        # Two terms or views of a kind are numbered.
        (
            additive(SCL, SCL | {"temperature": 0.5}, CE),
            additive(SCL, SCL | {"temperature": 0.7}, CE),
            {"Temperature τ of SCL 2": ("0.5", "0.7")},
        ),
        (
            translated(0.5),
            translated(0.9),
            {"Sampling temperature T of back-translation 2 for SCL": ("0.5", "0.9")},
        ),
        # λ stands for both weights, unless it binds them in two ways.
        (phase(objective=mix(0.5)), run(), {"Weight λ": ("0.5", "0.9")}),
        (phase(objective=mix(0.3, "additive")), phase(objective=mix(0.4, "additive")), {"Weight λ": ("0.3", "0.4")}),
        (phase(objective=mix(0.9)), phase(objective=mix(0.9, "additive")), {"Weight of CE": ("0.1", "1")}),
        # A turned knob has its values and their steps; a turn that changed nothing is no difference.
        (
            turned((40, "temperature", 0.1), (1200, "learning_rate", 0.5), (2, "lambda", 0.5)),
            run(),
            {
                "Weight λ": ("0.9 → 0.5 at step 2", "0.9"),
                "Temperature τ of SCL": ("0.3 → 0.1 at step 40", "0.3"),
                "Learning rate ×": ("1 → 0.5 at step 1,200", "1"),
            },
        ),
        (
            turned((5, "temperature", 0.2), (31, "temperature", 0.08)),
            run(),
            {"Temperature τ of SCL": ("0.3 → 0.2 at step 5 → 0.08 at step 31", "0.3")},
        ),
        (turned((5, "temperature", 0.3), (7, "learning_rate", 1.0)), run(), {}),
        (
            phase(objective=mix(0.5, "additive")),
            turned((4, "cross_entropy.weight", 0.2), phases=[{"objective": mix(0.5, "additive")}]),
            {"Weight of CE": ("1", "1 → 0.2 at step 4")},
        ),
        (
            run(phases=SIMCSE_FIRST),
            turned((8, "temperature", 0.1), phases=SIMCSE_FIRST),
            {"Phase 2: Temperature τ of SCL": ("0.3", "0.3 → 0.1 at step 8")},
        ),
        # Rows of a file that changed; other rows of another sample only follow.
        (of_file("a"), of_file("b"), {"Rows of the task": ("aaaaaaaa", "bbbbbbbb")}),
        (of_file("a", 0, train_size=20), of_file("b", 1, train_size=20), {"Seed": ("0", "1")}),
        (of_file("a"), of_file("b", train_size=20), {"Training rows": ("All", "20")}),
        (of_file("a", 0), of_file("b", 1), {"Rows of the task": ("aaaaaaaa", "bbbbbbbb"), "Seed": ("0", "1")}),
        # The source of the same rows makes no difference.
        (of_file("a"), of_file("a", path="/y/b.csv", **READ), {}),
        (
            of_file(None),
            of_file(None, path="/y/b.csv", **READ),
            {"Task": ("a.csv", "b.csv"), "Text column": ("Detected", "review")},
        ),
    ],
)
def test_every_difference_is_one_line(
    one: RunConfig, other: RunConfig, differences: dict[str, tuple[str, str]]
) -> None:
    assert diff(one, other) == differences
    assert diff(other, one) == {label: values[::-1] for label, values in differences.items()}


def test_settings_of_another_term_are_listed_unless_they_are_the_defaults() -> None:
    objective = mix(level="token", k=60, views=[{"view": "eda", "rate": 0.3}])
    found = diff(phase(objective=ALONE), phase(objective=objective))
    assert found["Level of SCL"] == ("–", "Token")
    assert found["Tokens k of SCL"] == ("–", "60")
    assert found["Views of SCL"] == ("–", "Include the text itself, Easy data augmentation")
    assert found["Rate r of easy data augmentation for SCL"] == ("–", "0.3")
    assert not {"Clusters of SCL", "Queue of SCL"} & found.keys()


def test_three_terms_have_weights_instead_of_lambda() -> None:
    terms = [*mix()["terms"], {"loss": "rdrop", "weight": 0.0, "views": DROPOUT}]
    found = diff(phase(objective={"terms": terms}), phase(objective=mix(0.5)))
    assert found["Weight of SCL"] == ("0.9", "0.5")
    assert "Weight λ" not in found


def test_three_runs_have_a_value_each() -> None:
    lora = phase(trainable={"part": "lora", "lora_dropout": 0.2})
    assert diff(run(), lora, phase(trainable={"part": "last_blocks", "blocks": 4})) == {
        "Trained weights": ("All weights", "LoRA", "Last blocks"),
        "Trained blocks": ("–", "–", "4"),
        "LoRA rank": ("–", "8", "–"),
        "LoRA dropout": ("–", "0.2", "–"),
    }
    found = diff(of_file("a"), of_file("a", **READ), of_file("b", train_size=20))  # two have the same rows
    assert found["Training rows"] == ("All", "All", "20")
    assert found["Text column"] == ("Detected", "review", "Detected")


def test_different_values_with_the_same_text_are_numbered() -> None:
    def of(third: float) -> RunConfig:
        return turned(*((i, "lambda", v) for i, v in enumerate([0.1, 0.2, third, 0.4, 0.5], 1)))

    text = "0.9 → 0.1 at step 1 → … → 0.5 at step 5 (5 turns)"
    assert diff(of(0.3), of(0.35)) == {"Weight λ": (f"{text} (1)", f"{text} (2)")}
    assert diff(of_file("a"), of_file("b", path="/y/a.csv"))["Task"] == ("a.csv (1)", "a.csv (2)")


def test_the_name_of_a_task_is_not_escaped() -> None:
    found = diff(run(task={"name": HOSTILE}), run(task={"id": "news_topics", "name": "News"}))
    assert found["Task"] == (" ".join(HOSTILE.split()), "News")


class TestPrepared:
    """Values that `prepare` derives from the user's settings."""

    @staticmethod
    def prepared(**given: Any) -> RunConfig:
        return prepare(parse_config(given), gpu=False)[0]

    def test_frames_follow_from_steps(self) -> None:
        one, other = (self.prepared(phases=[{"steps": steps}]) for steps in (40, 60))
        assert diff(one, other) == {"Steps": ("40", "60")}

    def test_chosen_frames_are_told(self) -> None:
        one = self.prepared(phases=[{"steps": 40}])
        other = self.prepared(phases=[{"steps": 40}], probe={"frame_steps": [10]})
        assert diff(one, other) == {"Frames": (f"{len(one.probe.frame_steps or ())}", "3")}

    def test_points_follow_from_validation_rows(self) -> None:
        one, other = (self.prepared(probe={"size": size}, phases=[{"steps": 5}]) for size in (50, 60))
        assert diff(one, other) == {"Validation rows": ("50", "60")}


def hashed(**more: Any) -> str:
    return config_hash(apply_settings(RunConfig(), more).to_json())


@each(
    "more",
    [{"name": "another"}, {"task.name": "Mine"}, {"checkpoint.every_steps": 7}, {"probe.frame_steps": [0, 3]}],
)
def test_names_frames_and_saved_weights_do_not_count(more: dict[str, Any]) -> None:
    assert hashed(**more) == hashed()


@each(
    "more",
    [{"seed": 1}, {"lambda": 0.5}, {"task.train_size": 20}, {"device": "cpu"}, {"probe.size": 20}, {"processes": 2}],
)
def test_everything_else_counts(more: dict[str, Any]) -> None:
    assert hashed(**more) != hashed()


# Settings of losses that older versions did not have, each with a value that is not its default.
LATER_SETTINGS: dict[str, dict[str, Any]] = {
    "ce-scl": {"base_temperature": 0.07, "reduction": "mean_all"},
    "dscl": {"base_temperature": 0.07, "normalize": False, "variant": "notes-code", "queue": 64, "momentum": 0.5},
    "simcse": {"normalize": False, "label_filter": True},
    "ce": {"cutmix": 0.07, "angle_margin": 2},
}


@each("preset", LATER_SETTINGS)
def test_runs_from_before_a_setting_existed_keep_their_hash(preset: str) -> None:
    text = apply_settings(RunConfig(), {"preset": preset}).to_json()
    for name, value in LATER_SETTINGS[preset].items():
        given = json.loads(text)
        (term,) = (one for one in given["phases"][0]["objective"]["terms"] if name in one)
        del term[name]
        assert config_hash(json.dumps(given)) == config_hash(text), name
        term[name] = value
        assert config_hash(json.dumps(given)) != config_hash(text), name


@each(
    ("section", "field", "usual", "other"), [("encoder", "dropout", None, 0.1), ("task", "paraphrases", "none", "weak")]
)
def test_a_run_with_the_default_of_a_later_field_is_written_as_before(
    section: str, field: str, usual: object, other: object
) -> None:
    assert field not in json.loads(RunConfig().to_json())[section]
    assert hashed(**{f"{section}.{field}": other}) != hashed(**{f"{section}.{field}": usual}) == hashed()


def test_neither_the_order_of_keys_nor_one_process_counts() -> None:
    backwards = dict(reversed(json.loads(RunConfig().to_json()).items()))
    assert config_hash(json.dumps(backwards)) == hashed()
    del backwards["processes"]
    assert config_hash(json.dumps(backwards)) == hashed()


PLAIN = additive(CE, SCL)


@each(
    ("other", "total", "ce", "scl"),
    [
        (additive(CE, SCL), True, True, True),
        (additive(SCL, CE), True, True, True),
        (additive(CE, SCL, optimiser={"learning_rate": 1e-3}), True, True, True),
        (additive(CE, SCL | {"weight": 0.5}), False, True, True),
        (additive(CE, SCL | {"temperature": 0.1}), False, True, False),
        (additive(CE, SCL, batch_size=8), False, True, False),
        (additive(CE | {"label_smoothing": 0.1}, SCL), False, False, True),
        (additive(CE, SCL, turns=((3, "temperature", 0.1),)), False, True, False),
        (additive(CE, SCL, turns=((3, "supcon.weight", 0.5),)), False, True, True),
        (additive(CE, SCL, turns=((3, "learning_rate", 0.5),)), True, True, True),
    ],
)
def test_what_makes_a_loss_another_quantity(other: RunConfig, total: bool, ce: bool, scl: bool) -> None:
    found = [same_loss([PLAIN, other], name) for name in ("loss", "loss.cross_entropy", "loss.supcon")]
    assert found == [total, ce, scl]


def test_cross_entropy_alone_does_not_depend_on_the_batch() -> None:
    assert same_loss([additive(CE), additive(CE, batch_size=4)], "loss")


def test_a_part_is_the_same_in_whichever_phase_it_is() -> None:
    simcse = {"objective": {"terms": [{"loss": "simcse", "views": DROPOUT}]}, "steps": 5}
    plain = {"objective": ALONE, "steps": 5}
    one, two = run(phases=[plain]), run(phases=[simcse, plain])
    assert same_loss([one, two], "loss.cross_entropy")
    assert not same_loss([one, two], "loss")


def test_pieces_of_a_part_go_with_it() -> None:
    rdrop = {"loss": "rdrop", "alpha": 1.0, "views": [{"view": "head_dropout"}]}
    assert same_loss([additive(rdrop), additive(rdrop | {"weight": 0.5})], "loss.rdrop.kl")
    assert not same_loss([additive(rdrop), additive(rdrop | {"alpha": 4.0})], "loss.rdrop.kl")
