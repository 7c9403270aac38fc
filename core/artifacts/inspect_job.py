"""The job that applies a run's model to a text, its deletions, the probe set by layer, or a similarity task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from torch import Tensor

from core.advice.score_source import classifier_learned
from core.artifacts.cache import load_or_compute
from core.artifacts.changed_texts import CHANGED_TEXTS, TEXTS_MAX, Change, ChangedTexts, Text, changes
from core.artifacts.maps import layer_numbers, layers_path, write_layers
from core.artifacts.measures import (
    PAIRS_MAX,
    TRAINING_MEASURES,
    TRAINING_ROWS_MAX,
    SimilarityScores,
    TrainingMeasures,
    similarity_path,
)
from core.artifacts.sentence import (
    END_TEXTS,
    END_TEXTS_MAX,
    Deletions,
    EndTexts,
    Inspected,
    TokenChoice,
    TokenTerm,
    check_text,
    deletions_path,
    drop_old_texts,
    inspected_path,
    takes_pairs,
    token_choice_path,
    without_each_word,
)
from core.artifacts.weights import UNTRAINED, all_known, load_at, probe_of, untrained_encoder, weight_stamps
from core.catalogue.views import BACK_TRANSLATION, VIEWS, ViewEntry
from core.config import EncoderConfig, Precision
from core.config.objective import TermConfig, ViewConfig, with_number
from core.config.plan import TermPlan, objective_at, plan_phase
from core.encoders.model import Encoder, Tokenizer
from core.encoders.packing import Tokens
from core.encoders.taps import Taps, topk_token_views
from core.errors import ConfigError, TaskError, quote_value
from core.events import FloatArray, TokenText
from core.messages import Message
from core.models.source import encoder_folder, read_shape
from core.parameters import EMBEDDINGS, integer_setting
from core.registry import load
from core.representation.metrics import frame_measures, spearman_similarity
from core.settings import settings
from core.store import RunRecord, Store, TaskLibrary
from core.store.budget import reading_weights
from core.texts.eda import row_generator, stream
from core.training.adversarial import arrange_gradients, embedding_gradients
from core.training.encode import ENCODE_BATCH, Attention, Encodings, encode, encoder_autocast
from core.training.untrained import probe_rows
from core.views.back_translation import CANONICAL_ROWS, TRANSLATIONS, round_trip
from core.views.embedding import Embedded
from core.views.token_clusters import cluster_members
from core.workers import Progress
from core.workers.run_rows import TaskSource

# An adversarial step follows SimCSE, which needs no labels and no trained classifier.
ADVERSARY = TermPlan("", TermConfig(loss="simcse", views=(ViewConfig(view="dropout"),)))
# Results of one model on texts under changes: changed, cosines [K, M], plain and predicted, as in ChangedTexts.
Changed = tuple[NDArray[np.bool_], FloatArray, NDArray[np.int64], NDArray[np.int64]]
# The file that holds a result, and the steps it covers.
Answer = tuple[Path, Iterable[int]]


def job(request: dict[str, Any], store_folder: Path, progress: Progress) -> dict[str, Any]:
    """Inspect a run's model, reusing results in the run's folder.

    Args:
        request: "run": its id; "what": one of
            "sentence" with "text" and "second" (None for a single text): the text at every step with weights;
            "layers" with "step": the probe set after every block;
            "deletions" with "text", "second" and "step": the text without each of its words;
            "tokens" with "text", "second" and "step": the tokens that the objective of that step contrasts;
            "similarity" with "task", the id of a library task with scores: the correlation at every step with weights;
            "test": up to END_TEXTS_MAX test texts with the last weights of a finished run;
            "training": measures of up to TRAINING_ROWS_MAX training rows with the last weights;
            "changes": up to TEXTS_MAX test texts under small changes, with the first and the last weights.
    Returns: "file", the file in the run's folder that holds the result, and its "steps".
    Raises: TaskError for a text that cannot be read, ConfigError for an invalid request, StoreError for a step without
        weights, EncoderError or TrainingError for weights that cannot be loaded.
    """
    kind = request.get("what")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError("what", kind, "choose {known}.", known=tuple(KINDS))
    with closing(Store(store_folder)) as store:
        run = store.run(str(request.get("run")))
        probe_of(run)
        with reading_weights(store, run.id):
            path, steps = KINDS[kind](store, run, request, progress)
        return {"file": path.relative_to(store.run_folder(run.id)).as_posix(), "steps": list(steps)}


def _sentence(store: Store, run: RunRecord, request: Mapping[str, Any], progress: Progress) -> Answer:
    text, folder = _parse_request_text(store, run, request), store.run_folder(run.id)
    sides = (text,) if isinstance(text, str) else text
    path, stamps = inspected_path(folder, *sides), weight_stamps(store, run)

    def compute(known: Inspected | None) -> Inspected:
        rows: dict[tuple[int, int], tuple[FloatArray, FloatArray, Attention]] = {}
        if known is not None:  # reuse results from unchanged weights
            arrays = zip(known.vectors, known.logits, known.attention, strict=True)
            rows = dict(zip(known.weights.items(), arrays, strict=True))
        tokenizer = load_at(store, run, 0)[1]
        (read,) = tokenizer.words([text]) or [TokenText(sides, (), len(tokenizer([text])[0].ids))]
        for number, (step, stamp) in enumerate(stamps.items()):
            progress(number, len(stamps), Message("Reading the text with the weights of step {step}", step=step))
            if (step, stamp) not in rows:
                one = _encoded(*load_at(store, run, step), [text], precision=run.config.precision, attended=[0])
                assert one.attention is not None
                rows[step, stamp] = one.pooled[0].numpy(), one.logits[0].numpy(), one.attention
        found = zip(*(rows[weights] for weights in stamps.items()), strict=True)
        vectors, logits, attention = (np.stack(arrays) for arrays in found)
        return Inspected(read, tuple(stamps), tuple(stamps.values()), vectors, logits, attention)

    load_or_compute(Inspected, path, compute, lambda known: all_known(run, stamps, known.weights))
    drop_old_texts(folder)
    return path, stamps


def _deletions(store: Store, run: RunRecord, request: Mapping[str, Any], progress: Progress) -> Answer:
    text, step = _parse_request_text(store, run, request), _parse_request_step(request)
    folder = store.run_folder(run.id)
    first, second = text if isinstance(text, tuple) else (text, None)
    path = deletions_path(folder, first, second, step)
    encoder, tokenizer = load_at(store, run, step)
    stamp = weight_stamps(store, run)[step]

    def compute(_known: Deletions | None) -> Deletions:
        words = tokenizer.words([text])
        if words is None:
            raise TaskError("This encoder's tokenizer does not report word positions, so no word can be deleted.")
        texts = [text, *without_each_word(words[0])]
        doing = Message("Encoding the text without each of its words")
        logits = _encoded(encoder, tokenizer, texts, precision=run.config.precision, report=(progress, doing)).logits
        shares = softmax(logits.numpy().astype(np.float64), axis=1).astype(np.float32)
        return Deletions(words[0], shares[0], shares[1:], stamp)

    load_or_compute(Deletions, path, compute, lambda known: known.stamp == stamp)
    drop_old_texts(folder)
    return path, [step]


def _tokens(store: Store, run: RunRecord, request: Mapping[str, Any], progress: Progress) -> Answer:
    text, step = _parse_request_text(store, run, request), _parse_request_step(request)
    folder = store.run_folder(run.id)
    first, second = text if isinstance(text, tuple) else (text, None)
    path = token_choice_path(folder, first, second, step)
    encoder, tokenizer = load_at(store, run, step)
    stamp = weight_stamps(store, run)[step]

    def compute(_known: TokenChoice | None) -> TokenChoice:
        progress(0, 1, Message("Reading the text with the weights of step {step}", step=step))
        read = tokenizer.words([text], each_token=True)
        if read is None:
            raise TaskError("This encoder's tokenizer does not report word positions, so no token can be marked.")
        plan = plan_phase(objective_at(run.effective, step).objective, len(encoder.blocks))
        terms: list[TokenTerm] = []
        for one in (of for of in plan.terms if of.term.level == "token"):
            name = with_number(one.term.entry.symbol, one.key, one.term.loss)
            k, clusters = (integer_setting(one.term.parameters, setting) for setting in ("k", "clusters"))
            terms += (TokenTerm(name, group[0].layer, k, clusters) for group in one.groups)
        (tokens,) = tokenizer([text], keep=False)
        layers = tuple({term.layer for term in terms})
        with torch.inference_mode(), encoder_autocast(run.config.precision, torch.device("cpu")):
            found = encoder.encode([tokens], Taps(tokens=plan.tokens, attention=layers))
        special = torch.tensor([[one in encoder.special_ids for one in tokens.ids]])  # [1, T]
        attention = np.zeros((len(terms), len(tokens.ids)), np.float32)
        chosen = np.zeros(attention.shape, np.int64)
        for place, term in enumerate(terms):
            row = found.attention[term.layer]  # [1, heads, T]
            attention[place] = row[0].mean(0).numpy()
            top = topk_token_views(row, torch.ones_like(special), special, term.k)
            present = top.view_mask[0]
            vectors = found.tokens[term.layer].vectors[:, : term.k]
            numbers = torch.ones(term.k, dtype=torch.long)
            if term.clusters and present.sum() >= term.clusters:
                numbers += cluster_members(vectors, top.view_mask, term.clusters)[0].int().argmax(0)
            chosen[place, top.indices[0][present].numpy()] = numbers[present].numpy()
        return TokenChoice(read[0], tuple(terms), int((~special).sum()), attention, chosen, stamp)

    load_or_compute(TokenChoice, path, compute, lambda known: known.stamp == stamp)
    drop_old_texts(folder)
    return path, [step]


def _layers(store: Store, run: RunRecord, request: Mapping[str, Any], progress: Progress) -> Answer:
    step, folder = _parse_request_step(request), store.run_folder(run.id)
    encoder, tokenizer = load_at(store, run, step)
    stamp = weight_stamps(store, run)[step]
    if not layer_numbers(folder, step, stamp):
        task = run.config.task
        data = TaskSource(store.folder).rows_of(task, run.config.seed).with_paraphrases(task.paraphrases)
        train = data.train.take(probe_rows(len(data.train), run.config.probe.train_size or 0))
        texts = [*data.validation.inputs[: probe_of(run).held_out], *train.inputs]
        # The first token has the same embedding in every text.
        first = 1 if encoder.pooling == "cls" else EMBEDDINGS
        layers = _all_layers(encoder, tokenizer, texts, run.config.precision, progress, first)
        write_layers(folder, step, layers, stamp, first)
    return layers_path(folder, step), [step]


def _all_layers(
    encoder: Encoder,
    tokenizer: Tokenizer,
    texts: Sequence[Text],
    precision: Precision,
    progress: Progress,
    first: int,
) -> FloatArray:
    """Compute the pooled vectors [L, N, H] of every layer from `first` on, in batches like those of a frame."""
    tokens, every = tokenizer(texts), tuple(range(first, len(encoder.blocks) + 1))
    order = sorted(range(len(tokens)), key=lambda i: -len(tokens[i].ids))
    found = np.empty((len(every), len(texts), encoder.base.config.hidden_size), np.float32)
    with torch.inference_mode(), encoder_autocast(precision, torch.device("cpu")):
        for start in range(0, len(order), ENCODE_BATCH):
            progress(start, len(order), Message("Encoding the examples at every block"))
            batch = order[start : start + ENCODE_BATCH]
            pooled = encoder.encode([tokens[i] for i in batch], Taps(every)).pooled
            for layer in every:
                found[layer - first, batch] = pooled[layer].numpy()
    return found


def _encoded(
    encoder: Encoder,
    tokenizer: Tokenizer,
    texts: Sequence[Text],
    *,
    precision: Precision,
    attended: Sequence[int] = (),
    report: tuple[Progress, Message] | None = None,
) -> Encodings:
    done = count(0, ENCODE_BATCH)

    def interrupted() -> bool:
        if report is not None:
            report[0](next(done), len(texts), report[1])  # before every batch; raises if the job is cancelled
        return False

    autocast = encoder_autocast(precision, torch.device("cpu"))
    # Tokens are not cached: the process is long-lived, and users rarely request the same text twice.
    return encode(encoder, tokenizer, texts, autocast=autocast, interrupted=interrupted, attended=attended, keep=False)


def _parse_request_text(store: Store, run: RunRecord, request: Mapping[str, Any]) -> Text:
    pair, most = takes_pairs(store, run), settings().max_text_chars
    return check_text(request.get("text"), request.get("second"), pair=pair, most_chars=most)


def _parse_request_step(request: Mapping[str, Any]) -> int:
    step = request.get("step")
    if not isinstance(step, int):
        raise ConfigError("step", step, "give a step with stored weights.")
    return step


def _similarity(store: Store, run: RunRecord, request: Mapping[str, Any], progress: Progress) -> Answer:
    task, tasks = str(request.get("task")), TaskLibrary(store.folder)
    if tasks.task(task).kind != "similarity":
        name = quote_value(tasks.task(task).name)
        raise TaskError("The task {task} has no similarity scores: choose one with scores.", task=name)
    rows = tasks.rows(task)
    rows = rows.take(np.linspace(0, len(rows) - 1, min(PAIRS_MAX, len(rows))).round().astype(int).tolist())
    path, stamps = similarity_path(store.run_folder(run.id), task), weight_stamps(store, run)

    def compute(known: SimilarityScores | None) -> SimilarityScores:
        values: dict[int, float | None] = {}
        for number, (step, stamp) in enumerate(stamps.items()):
            doing = Message("Reading {pairs:,} pairs with the weights of step {step}", pairs=len(rows), step=step)
            progress(number, len(stamps), doing)
            if known is not None and known.stamps.get(step) == stamp:
                values[step] = known.values[step]
                continue
            model = load_at(store, run, step)
            first, second = (
                _encoded(*model, side, precision=run.config.precision).pooled.numpy()
                for side in (rows.texts, rows.seconds or ())
            )
            values[step] = spearman_similarity(first, second, [float(label) for label in rows.labels])
        return SimilarityScores(values, stamps, len(rows))

    load_or_compute(SimilarityScores, path, compute, lambda known: all_known(run, stamps, known.stamps))
    return path, stamps


def _test(store: Store, run: RunRecord, request: Mapping[str, Any], progress: Progress) -> Answer:
    path = store.run_folder(run.id) / END_TEXTS
    stamp = weight_stamps(store, run).get(run.steps, UNTRAINED)

    def compute(_known: EndTexts | None) -> EndTexts:
        model = load_at(store, run, run.steps)
        test = TaskSource(store.folder).rows_of(run.config.task, run.config.seed).test
        rows = np.linspace(0, len(test) - 1, min(END_TEXTS_MAX, len(test))).round().astype(int).tolist()
        taken, scored = test.take(rows), store.predictions(run.id, "test")
        progress(0, len(rows), Message("Encoding the test texts"))
        found = _encoded(*model, taken.inputs, precision=run.config.precision)
        # A linear probe was scored if the classifier never learned.
        logits = found.logits.numpy() if scored is None else scored.logits[rows]
        return EndTexts(taken.display_texts, taken.labels, len(test), stamp, found.pooled.numpy(), logits)

    load_or_compute(EndTexts, path, compute, lambda known: stamp in (UNTRAINED, known.stamp))
    return path, [run.steps]


def _training(store: Store, run: RunRecord, request: Mapping[str, Any], progress: Progress) -> Answer:
    path = store.run_folder(run.id) / TRAINING_MEASURES
    stamp = weight_stamps(store, run).get(run.steps, UNTRAINED)

    def compute(_known: TrainingMeasures | None) -> TrainingMeasures:
        model = load_at(store, run, run.steps)
        train = TaskSource(store.folder).rows_of(run.config.task, run.config.seed).train
        places = np.linspace(0, len(train) - 1, min(TRAINING_ROWS_MAX, len(train))).round().astype(int).tolist()
        taken, report = train.take(places), (progress, Message("Encoding the training rows"))
        found = _encoded(*model, taken.inputs, precision=run.config.precision, report=report)
        progress(len(places), len(places), Message("Measuring the vectors"))
        return TrainingMeasures(frame_measures(found.pooled.numpy(), taken.labels), len(places), len(train), stamp)

    load_or_compute(TrainingMeasures, path, compute, lambda known: stamp in (UNTRAINED, known.stamp))
    return path, [run.steps]


def _changes(store: Store, run: RunRecord, request: Mapping[str, Any], progress: Progress) -> Answer:
    path = store.run_folder(run.id) / CHANGED_TEXTS
    stamp = weight_stamps(store, run).get(run.steps, UNTRAINED)

    def compute(_known: ChangedTexts | None) -> ChangedTexts:
        test = TaskSource(store.folder).rows_of(run.config.task, run.config.seed).test
        rows = np.linspace(0, len(test) - 1, min(TEXTS_MAX, len(test))).round().astype(int).tolist()
        taken = test.take(rows)
        every = changes([*taken.texts, *(taken.seconds or ())])

        def read_at(step: int, before: int) -> Changed:
            doing = Message("Reading changed texts with the weights of step {step}", step=step)
            model, kept = load_at(store, run, step), store.folder / TRANSLATIONS

            def report(place: int) -> None:
                progress(before + place, 2 * len(every), doing)

            return _read_changed(*model, taken.inputs, rows, every, run.config.precision, kept, report)

        cosines = read_at(0, 0)[1]
        changed, at_end, plain, predicted = read_at(run.steps, len(every))
        if not classifier_learned(run.effective, run.steps):
            plain, predicted = np.empty(0, np.int64), np.empty((0, 0), np.int64)
        (names, rates), labels = zip(*every, strict=True), np.array(taken.labels)
        both = np.stack([cosines, at_end])
        return ChangedTexts(names, rates, len(test), labels, changed, both, plain, predicted, stamp)

    load_or_compute(ChangedTexts, path, compute, lambda known: stamp in (UNTRAINED, known.stamp))
    return path, [0, run.steps]


def _read_changed(
    encoder: Encoder,
    tokenizer: Tokenizer,
    texts: Sequence[Text],
    rows: Sequence[int],
    every: Sequence[Change],
    precision: Precision,
    translations: Path,
    progress: Callable[[int], None],
) -> Changed:
    """Encode texts and their changes.

    Args:
        rows: rows of the texts, which determine the changes.
        translations: cache of back-translations.
    """
    cosines = np.ones((len(every), len(texts)), np.float32)
    changed, predicted = np.zeros(cosines.shape, bool), np.empty(cosines.shape, np.int64)
    before = _encoded(encoder, tokenizer, texts, precision=precision)
    plain = before.logits.argmax(1).numpy()
    for place, change in enumerate(every):
        progress(place)
        other, inputs = list(range(len(texts))), list(texts)
        if change.is_of_words:
            if change.name == BACK_TRANSLATION.name:
                inputs = _back_translated(texts, translations, partial(progress, place))
            else:
                inputs = [change.apply(text, row) for text, row in zip(texts, rows, strict=True)]
            other = [i for i, text in enumerate(inputs) if text != texts[i]]
        predicted[place] = plain
        if not other:
            continue
        pooled, logits = _pooled_changed(encoder, tokenizer, [inputs[i] for i in other], change, precision)
        changed[place, other] = True
        cosines[place, other] = torch.cosine_similarity(pooled, before.pooled[other]).numpy()
        predicted[place, other] = logits.argmax(1).numpy()
    return changed, cosines, plain, predicted


def _back_translated(texts: Sequence[Text], kept: Path, progress: Callable[[], None]) -> list[Text]:
    """Return texts or pairs after a round trip with the view's defaults. Args: kept: cache of translations."""
    settings = {one.name: one.default for one in BACK_TRANSLATION.parameters if one.default is not None}
    trip = round_trip(settings, 0, kept, torch.device("cpu"))
    sides: list[list[str]] = []
    for side in [texts] if isinstance(texts[0], str) else zip(*texts, strict=True):
        given, found = [str(text) for text in side], list[str]()
        for start in range(0, len(given), CANONICAL_ROWS):
            progress()
            found += trip.translate_rows(given, range(start, min(start + CANONICAL_ROWS, len(given))))
        sides.append(found)
    return list(sides[0]) if len(sides) == 1 else [(first, second) for first, second in zip(*sides, strict=True)]


def distances_job(request: dict[str, Any], store_folder: Path, progress: Progress) -> dict[str, Any]:
    """Measure how far changes and views move texts in an encoder before training.

    Args:
        request: "encoder", its id, and "texts", in which a pair is a list of two.
    Returns: "changes": for each, its name, its rate, the share of the texts that it changes, and their mean cosine with
        the unchanged text, None if there are none.
    Raises: EncoderError or ConfigError for an encoder that cannot be loaded.
    """
    texts: list[Text] = [text if isinstance(text, str) else (text[0], text[1]) for text in request["texts"]]
    every = changes([side for text in texts for side in ((text,) if isinstance(text, str) else text)])
    config = EncoderConfig(id=str(request["encoder"]))
    limit = read_shape(encoder_folder(config.id) / "config.json", config.id).positions
    model = untrained_encoder(config.model_copy(update={"max_length": min(config.max_length, limit)}))
    kept = store_folder / TRANSLATIONS

    def report(place: int) -> None:
        progress(place, len(every), Message("Reading changed texts"))

    changed, cosines, _, _ = _read_changed(*model, texts, range(len(texts)), every, "float32", kept, report)
    means = [float(row[of].mean()) if of.any() else None for row, of in zip(cosines, changed, strict=True)]
    shares = changed.mean(1).tolist()
    return {"changes": [[*change, share, mean] for change, share, mean in zip(every, shares, means, strict=True)]}


def _pooled_changed(
    encoder: Encoder, tokenizer: Tokenizer, texts: Sequence[Text], change: Change, precision: Precision
) -> tuple[Tensor, Tensor]:
    """Return the pooled vectors [N, H] and logits [N, C] of changed texts; a view is applied here."""
    view = None if change.is_of_words else VIEWS[change.name]
    tokens: list[Tokens] = list(tokenizer(texts, keep=False))
    if view is not None and view.tokens:
        shuffle = load(view.tokens)
        rngs = (row_generator(0, 0, row, stream(view.name)) for row in range(len(tokens)))
        tokens = [shuffle(one, encoder.special_ids, rng) for one, rng in zip(tokens, rngs, strict=True)]
    order = sorted(range(len(tokens)), key=lambda i: -len(tokens[i].ids))
    pooled = torch.empty(len(tokens), encoder.base.config.hidden_size)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        try:
            for start in range(0, len(order), ENCODE_BATCH):
                batch = order[start : start + ENCODE_BATCH]
                given, change_batch = [tokens[i] for i in batch], None
                autocast = encoder_autocast(precision, pooled.device)
                if view is not None and view.embedding:
                    gradients = []
                    if view.follows_gradient:
                        encoder.train()  # the loss contrasts two dropout passes
                        gradients = embedding_gradients(encoder, given, torch.zeros(len(given)), ADVERSARY, autocast)
                    change_batch = partial(_change_embeddings, view, range(len(given)), gradients)
                encoder.train(view is not None and view.kind == "pass")
                with autocast:
                    found = encoder.encode(given, Taps(), change=change_batch)
                pooled[batch] = found.pooled[len(encoder.blocks)]
            encoder.eval()
            return pooled, encoder.logits(pooled)
        finally:
            encoder.eval()  # other callers share it


def _change_embeddings(
    view: ViewEntry, every: range, gradients: Sequence[Tensor], embeddings: Tensor, owners: Tensor, special: Tensor
) -> Tensor:
    settings = {one.name: one.default for one in view.parameters}
    gradient = arrange_gradients(gradients, embeddings, owners, every) if gradients else None
    changed: Tensor = load(view.embedding)(Embedded(embeddings, owners, special, every, gradient), settings)
    return changed


KINDS: Mapping[str, Callable[[Store, RunRecord, Mapping[str, Any], Progress], Answer]] = {
    "sentence": _sentence,
    "layers": _layers,
    "deletions": _deletions,
    "tokens": _tokens,
    "similarity": _similarity,
    "test": _test,
    "training": _training,
    "changes": _changes,
}
