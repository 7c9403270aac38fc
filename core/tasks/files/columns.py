"""Detection of a header, and of the columns with texts and labels, by their names first, then by their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.config import ReadingConfig
from core.errors import ConfigError, TaskError, quote_value
from core.messages import join_list
from core.tasks.rows import Kind, SplitName

GUESS_ALL = ReadingConfig()


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Names as `plain_name` returns them. Earlier names take precedence.
PAIR_WORDS = _words(
    """
    text_a text_b text text_b premise hypothesis sentence1 sentence2 sentence_1 sentence_2 sentence_a sentence_b
    question1 question2 question_1 question_2 text1 text2 text_1 text_2 sent1 sent2 s1 s2 1_string 2_string 문장1
    문장2 句子1 句子2 文本1 文本2 question sentence question passage question answer query passage query document
    anchor positive
    """
)
PAIR_NAMES = tuple(zip(PAIR_WORDS[::2], PAIR_WORDS[1::2], strict=True))
TEXT_NAMES = _words(
    """
    text texts sentence sentences review reviews review_text review_body reviewtext content contents document
    documents comment comments comment_text message messages tweet tweets post body utterance phrase passage
    question query input prompt description abstract premise sentence1 question1 text_a headline title summary 문장
    텍스트 리뷰 내용 본문 댓글 문서 질문 제목 文本 内容 評論 评论 句子 正文 评价 文章 问题 标题 texto frase reseña
    texte phrase commentaire avis satz kommentar bewertungstext testo recensione
    """
)
LABEL_NAMES = _words(
    """
    label labels gold_label class category target sentiment score similarity similarity_score similarity_label
    relatedness_score label_text class_label class_name class_index classes categories polarity emotion intent topic
    rating stars star quality is_duplicate duplicate is_paraphrase entailment_judgment acceptability toxic spam tag
    type genre output answer y 라벨 레이블 감정 감성 분류 점수 평점 주제 标签 標籤 类别 類別 分类 情感 分数 相似度
    主题 etiqueta clase étiquette classe klasse kategorie stimmung categoria categoría catégorie
    """
)
SPLIT_COLUMN_NAMES = _words("split splits set subset partition fold dataset 분할 划分")
SCORE_NAMES = frozenset(
    _words("score scores similarity similarity_score similarity_label relatedness_score sim sts_score 점수 相似度 分数")
)
SPLITS: dict[str, SplitName] = {
    **dict.fromkeys(("train", "training", "trn"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev", "development", "eval_dev"), "validation"),
    **dict.fromkeys(("test", "testing", "tst", "eval", "evaluation"), "test"),
}
LABEL_MEAN_CHARS = 40
LABEL_DISTINCT = 10
LABEL_DISTINCT_SHARE = 0.25
# Share of the values of a split column that must be names of splits.
SPLIT_SHARE = 0.9
# Digits match in one way only, so that long runs of them are fast.
NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


def plain_name(column: str) -> str:
    """Normalise a column name: `Gold Label` and `gold-label` become gold_label, `#1 String` becomes 1_string."""
    return re.sub(r"\W+", "_", column.casefold()).strip("_")


KNOWN_NAMES = frozenset({*TEXT_NAMES, *LABEL_NAMES, *SPLIT_COLUMN_NAMES, *PAIR_WORDS})
HEADER_MAX_WORDS = 5
# Letters other than those of numbers and dates, as in 1e-5 and 2020-01-02T10:30Z.
LETTER = re.compile(r"[^\W\d_eETZ]")
# Spellings of a missing value.
GAPS = frozenset({"", "-", "--", "?", ".", "na", "n/a", "nan", "null", "none", "nil"})


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row names the columns: known names, or short words above values of another kind."""
    columns = [
        (
            name.strip(),
            [cell for row in rows[1:] if len(row) > place and (cell := row[place].strip()).casefold() not in GAPS],
        )
        for place, name in enumerate(rows[0])
    ]
    if any(plain_name(name) in KNOWN_NAMES and name not in values for name, values in columns):
        return True
    named = [(name, values) for name, values in columns if name.casefold() not in GAPS]
    if any(name in values or _is_typed(name) for name, values in named):
        return False  # a name that occurs again below is a value
    if any(values and all(map(_is_typed, values)) for _name, values in named):
        return True
    names = [name for name, _values in named]
    short = all(len(name.split()) <= HEADER_MAX_WORDS for name in names)
    longest = max((sum(map(len, values)) / len(values) for _name, values in named if values), default=0.0)
    return short and len(set(names)) == len(names) and longest > 2 * max(map(len, names), default=0)


def _is_typed(value: str) -> bool:
    """Return whether a value is a number, a date or a time."""
    return any(map(str.isdigit, value)) and not LETTER.search(value)


@dataclass(frozen=True, slots=True)
class Column:
    """The values of a column in the first rows, without empty cells."""

    name: str
    values: tuple[str, ...]

    @property
    def distinct(self) -> int:
        return len(set(self.values))

    @property
    def mean_chars(self) -> float:
        return sum(map(len, self.values)) / len(self.values) if self.values else 0.0

    @property
    def like_label(self) -> bool:
        """Return whether the values are short on average, few of them are distinct, and some repeat."""
        few = self.distinct <= max(LABEL_DISTINCT, LABEL_DISTINCT_SHARE * len(self.values))
        again = self.distinct < len(self.values) or len(self.values) <= 2
        return bool(self.values) and few and again and self.mean_chars <= LABEL_MEAN_CHARS


def guess_columns(
    columns: Sequence[str], preview: Sequence[Sequence[str]], given: ReadingConfig = GUESS_ALL
) -> ReadingConfig:
    """Return `given`, with the columns and the kind of label filled in.

    Args:
        columns: their names, all different.
        preview: the first rows.
        given: settings that are not guessed; None is guessed, "" means none.
    Returns: text, text_b, label, split and kind, none of them None.
    Raises: ConfigError for a column that does not exist or has two roles; TaskError if no column fits the texts or the
        labels.
    """
    check_columns(columns, given)
    known = [
        Column(name, tuple(cell for row in preview if len(row) > place and (cell := row[place].strip())))
        for place, name in enumerate(columns)
    ]
    roles = {part: getattr(given, part) for part in ("text", "text_b", "label", "split")}

    def free() -> list[Column]:
        return [column for column in known if column.name not in roles.values()]

    if roles["text"] is None and roles["text_b"] is None and (pair := _pair(free())):
        roles["text"], roles["text_b"] = pair
    if roles["split"] is None:
        roles["split"] = _split(free())
    roles["label"] = roles["label"] or _named_label(free())
    roles["text"] = roles["text"] or _named(free(), TEXT_NAMES)
    roles["text_b"] = roles["text_b"] or ""
    roles["label"] = roles["label"] or _label_by_content(free())
    roles["text"] = roles["text"] or _text_by_content(free())
    for part in ("label", "text"):
        if roles[part] is None:
            raise TaskError(
                "No {part} column was found (columns: {names}). Choose the {part} column, or name it {part} in the "
                "first line.",
                part=part,
                names=quote_value(join_list(columns)),
            )
    label = next(column for column in known if column.name == roles["label"])
    kind = given.kind or _kind(label, paired=bool(roles["text_b"]))
    full = given.model_copy(update={**roles, "kind": kind})
    check_columns(columns, full)
    return full


def check_columns(columns: Sequence[str], given: ReadingConfig) -> None:
    """Check the columns of a config. Raises: ConfigError for a column that does not exist or has two roles."""
    parts = {"text": given.text, "text_b": given.text_b, "label": given.label, "split": given.split}
    named: dict[str, str] = {}
    for part, name in parts.items():
        if not name:
            continue
        if name not in columns:
            there = quote_value(join_list(columns))
            raise ConfigError(part, name, "the file has the columns {columns}; choose one of them.", columns=there)
        if name in named:
            raise ConfigError(part, name, "this is already the {part} column; choose another.", part=named[name])
        named[name] = part
    if given.kind == "similarity" and given.text_b == "":
        raise ConfigError("kind", given.kind, "similarity needs two texts; choose a second text.")


def _named(columns: Sequence[Column], names: Sequence[str]) -> str | None:
    found = {plain_name(column.name): column.name for column in reversed(columns)}
    return next((found[name] for name in names if name in found), None)


def _pair(columns: Sequence[Column]) -> tuple[str, str] | None:
    found = {plain_name(column.name): column for column in reversed(columns)}
    for first, second in PAIR_NAMES:
        if first in found and second in found:
            # The answer to a question may be a class, such as "yes" and "no".
            if second in LABEL_NAMES and found[second].like_label:
                continue
            return found[first].name, found[second].name
    return None


def _named_label(columns: Sequence[Column]) -> str | None:
    """Find the label column by its whole name, then by a word of it (`airline_sentiment`) if the values agree."""
    worded = (c.name for c in columns if c.like_label and set(plain_name(c.name).split("_")) & set(LABEL_NAMES))
    return _named(columns, LABEL_NAMES) or next(worded, None)


def _split(columns: Sequence[Column]) -> str:
    """Find a column by name whose values are names of splits; return "" without one."""
    name = _named(columns, SPLIT_COLUMN_NAMES)
    values = next((column.values for column in columns if column.name == name), ())
    fitting = sum(value.casefold() in SPLITS for value in values)
    return name if name and values and fitting >= SPLIT_SHARE * len(values) else ""


def _label_by_content(columns: Sequence[Column]) -> str | None:
    """Find the label-like column with the fewest distinct values, at least two; among equals, the last.

    In a file sorted by label, the first rows have only one label. The first label-like column is then returned.
    """
    likely = [column for column in columns if column.like_label]
    informative = [column for column in likely if column.distinct >= 2] or likely[:1]
    return min(reversed(informative), key=lambda column: column.distinct).name if informative else None


def _text_by_content(columns: Sequence[Column]) -> str | None:
    """Find the column with the longest values, except columns of numbers."""
    worded = [column for column in columns if not all(NUMBER.fullmatch(value) for value in column.values)]
    return max(worded, key=lambda column: column.mean_chars).name if worded else None


def _kind(label: Column, *, paired: bool) -> Kind:
    """Return "similarity" for numbers with fractions, or below the name of a score; whole numbers may be classes."""
    if not paired or not label.values or not all(NUMBER.fullmatch(value) for value in label.values):
        return "classes"
    scores = plain_name(label.name) in SCORE_NAMES or any(float(value) % 1 for value in label.values)
    return "similarity" if scores else "classes"
