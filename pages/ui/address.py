"""URL parameters of each page: one table per page defines how they are read, written and reset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from core.errors import PlaygroundError
from core.messages import N_
from core.store import RunRecord, Store
from pages.ui import state

Value = TypeVar("Value", str, int, float, bool, list[str])
Read = TypeVar("Read")

SEPARATOR = ","
ON = "on"
# Owner of an item. The item is meaningless once its owner changes.
Owner = Literal["run", "runs compared", "twin", "first run compared", "experiment", "design", "nothing"]


@dataclass(frozen=True, slots=True)
class Item(Generic[Value]):
    """One URL parameter.

    Attributes:
        name: name in the address.
        kind: type of its values.
        default: value of an absent parameter, never written to the address; None if it depends on the page's content.
        problem: clause that follows "but" in the complaint about an invalid value; marked with `N_` and translated
            when it is shown.
        of: owner; the item is reset when the owner changes.
        everywhere: whether every page has it.
    """

    name: str
    kind: type[Value]
    default: Value | None = None
    problem: str = ""
    of: Owner = "nothing"
    everywhere: bool = False

    @property
    def text(self) -> str | None:
        """Text of the parameter, None if absent; the caller validates it."""
        return state.text_in_url(self.name)

    def put(self, value: Value | None, default: Value | None = None) -> None:
        """Write a value to the address; None and the default remove the parameter."""
        usual = self.default if default is None else default
        text = None if value is None or value == usual else as_text(value)
        self.say([] if text is None else text)

    def say(self, texts: str | Sequence[str]) -> None:
        """Write one or more texts that the caller has formatted; none remove the parameter."""
        state.put_in_url(self.name, *([texts] if isinstance(texts, str) else texts))

    def forget(self) -> None:
        self.say([])

    def read(self, read: Callable[[str], Read | None], default: Read, problem: str = "") -> Read:
        """Parse the parameter with `read`; if that returns None, complain and return the default.

        Args:
            problem: replaces the item's problem if it depends on the page's content.
        """
        text = self.text
        if not text:
            return default
        value = read(text)
        if value is None:
            state.complain(self.name, text, problem or self.problem, everywhere=self.everywhere)
            self.forget()
            return default
        return value

    def choice(self, choices: Iterable[Value], default: Value, problem: str = "") -> Value:
        """Return the choice that the address names; if it names none of them, complain and return the default."""
        return self.read({as_text(value): value for value in choices}.get, default, problem)

    def run(self, store: Store) -> RunRecord | None:
        """Return the run that the address names, or None; complain if no run has that id."""
        text = self.text
        if text is None:
            return None
        try:
            return store.run(store.find(text))
        except PlaygroundError:
            state.complain(self.name, text, self.problem, everywhere=self.everywhere)
            return None


def as_text(value: Any) -> str | None:
    """Format a value for the address; False gives None, which removes the parameter."""
    match value:
        case bool():
            return ON if value else None
        case float():
            short = f"{value:g}"
            return short if float(short) == value else str(value)
        case list():
            return SEPARATOR.join(value)
    return str(value)


def split(text: str) -> list[str]:
    """Split a list in the address into its non-empty items."""
    return [part for part in (part.strip() for part in text.split(SEPARATOR)) if part]


def positive_number(text: str) -> int | None:
    """Parse a whole number above 0; return None if the text is invalid."""
    return int(text) if text.isdecimal() and int(text) > 0 else None


class Address:
    """Table of a page's URL parameters: its class attributes are the items."""

    @classmethod
    def items(cls) -> Mapping[str, Item[Any]]:
        """Return the items by their names in the address."""
        return {item.name: item for item in vars(cls).values() if isinstance(item, Item)}

    @classmethod
    def of(cls, owner: Owner) -> list[Item[Any]]:
        """List the items of an owner, such as a run or a twin."""
        return [item for item in cls.items().values() if item.of == owner]


NO_RUN = N_("no run has this id")


class EveryPage(Address):
    """Parameters of every page."""

    VERSION = Item("v", int, 1, N_("versions of links are whole numbers from 1"), everywhere=True)
    LANGUAGE = Item("lang", str, problem=N_("use en, zh or ko"), everywhere=True)
    LESSON = Item("lesson", str, problem=N_("there is no such lesson, or the lesson has no such part"), everywhere=True)


class Home(Address):
    """Parameters of Home."""

    REPLAY = Item("replay", str, "ce-scl", N_("there is no such replay"))


class FineTune(Address):
    """Parameters of Fine-tune."""

    RUN = Item("run", str, problem=NO_RUN)
    FROM = Item("from", str, problem=NO_RUN)
    # Translators: these words stay as they are, as an address says them.
    AS = Item("as", str, "ended", N_("use launched or ended"))
    TASK = Item("task", str)
    SET = Item("set", str)  # may repeat
    GRID = Item("grid", str)  # query of the grid form that opened this page; "Set up a grid" returns to it


class Runs(Address):
    """Parameters of Runs."""

    TAGS = Item("tags", list, [])
    EXPERIMENTS = Item("experiments", bool, False)


class Data(Address):
    """Parameters of Data."""

    VIEW = Item("view", str, "browse", N_("this page has no such section"))
    TASK = Item("task", str, problem=N_("there is no such task"))
    SEARCH = Item("q", str, "")


class Explore(Address):
    """Parameters of Explore; those of a map have their registry names, see `bound.bound_parameter`."""

    RUN = Item("run", str, problem=NO_RUN)
    FRAME = Item("frame", int, problem=N_("the run has no frame at this step"), of="run")
    SELECTED = Item("sel", str, "", N_("the run has no such examples"), of="run")
    ANCHOR = Item("at", int, of="run")
    CAMERA = Item("view", str, "", N_("this is not an area of a map"), of="run")
    SEARCH = Item("find", str, "", of="run")  # a search applies to the run's texts
    LAYERS = Item("layers", str, "", N_("no weights are kept for this step"), of="run")
    SINCE = Item("since", int, problem=N_("there is no frame at this step"), of="run")
    MAP = Item("map", str, "pca", N_("there is no such map"))
    DIMENSIONS = Item("dims", str, "2", N_("a map has 2 or 3 dimensions"))
    # Translators: these words stay as they are, as an address says them.
    LAYOUT = Item("layout", str, "ours", N_("use ours or library"))
    MODE = Item("mode", str, "each", N_("there is no such fit"))
    COLOUR = Item("colour", str, "label", N_("there is no such colouring"))
    PANEL = Item("panel", str, "texts", N_("there is no such panel"))
    TRUST = Item("trust", bool, False)
    TEST = Item("test", bool, False)
    NEIGHBOURS = Item("k", int)
    METRIC = Item("metric", str, "cosine", N_("there is no such distance"))
    BATCH = Item("batch", int, problem=N_("no batch has this size"))
    VARIANT = Item("variant", str, problem=N_("there is no such loss"))
    TEMPERATURE = Item("tau", float, problem=N_("this temperature is out of range"))
    SENTENCE = Item("say", str, "")
    SECOND = Item("and", str, "")
    MEASURES = Item("measures", bool, False)
    SIMILARITY = Item("scores", str, "", N_("there is no such similarity task"))
    CHANGED = Item("changed", bool, False)
    TRAINING = Item("training", bool, False)


class Tokens(Address):
    """Parameters of Tokens."""

    RUN = Item("run", str, problem=NO_RUN)
    VIEW = Item("view", str, "text", N_("this page has no such section"))
    EXAMPLE = Item("example", int, problem=N_("its attention was not stored"), of="run")
    SOURCE = Item("source", str, problem=N_("use the id of an example, or a text of your own"), of="run")
    TEXT = Item("text", str, of="run")
    SECOND = Item("second", str, of="run")
    LAYER = Item("layer", int, of="run")
    HEAD = Item("head", str, "mean", of="run")
    BEFORE = Item("before", int, problem=N_("no attention is stored for this step"), of="run")
    AFTER = Item("after", int, problem=N_("no attention is stored for this step"), of="run")
    CLASS = Item("class", str, "all", N_("there is no such class"), of="run")
    K = Item("k", int)
    PUNCTUATION = Item("marks", bool, False)
    # Translators: these words stay as they are, as an address says them.
    HEAT_MAP = Item("over", str, "steps", N_("use steps or layers"))
    LEAST = Item("least", int)


class Compare(Address):
    """Parameters of Compare."""

    RUNS = Item("runs", list, problem=N_("there is no such run"))
    SHOW = Item("show", str, "maps", N_("there is no such view"))
    A = Item("a", str, problem=N_("this run is not among those compared"), of="runs compared")
    B = Item("b", str, problem=N_("this run is not among those compared"), of="runs compared")
    TWIN = Item("twin", str, problem=N_("this run is not among those compared"), of="runs compared")
    CHANGE = Item("change", str, problem=N_("the run has no such setting"), of="twin")
    TO = Item("to", str, problem=N_("the setting has no such value"), of="twin")
    VALUE = Item("value", str, of="twin")
    SELECTED = Item("sel", str, "", of="first run compared")
    CAMERAS = Item("view", str, "", of="first run compared")
    FRAME = Item("frame", int)
    MAP = Item("map", str, "pca", N_("there is no such map"))
    COLOUR = Item("colour", str, "label", N_("there is no such colour"))
    CURVES = Item("curves", list)
    AXIS = Item("axis", str, "step", N_("there is no such axis"))
    MEAN = Item("mean", bool, False)
    SMOOTHING = Item("smooth", str, "none", N_("there is no such smoothing"))
    BETA = Item("beta", float, 0.8)
    WINDOW = Item("window", float, 9.0)
    CHANGED = Item("changed", bool, False)
    TRAINING = Item("training", bool, False)


class Experiments(Address):
    """Parameters of Experiments."""

    EXPERIMENT = Item("experiment", str, problem=N_("there is no such experiment"))
    NEW = Item("new", str, problem=N_("there is no such protocol"))
    SURFACE = Item("surface", str, problem=N_("there is no such task"))
    SET = Item("set", str)  # may repeat
    TASK = Item("task", str, problem=N_("there is no such task"), of="design")
    SEEDS = Item("seeds", int, problem=N_("this number of seeds is out of range"), of="design")
    STEPS = Item("steps", int, problem=N_("this number of steps is out of range"), of="design")
    FRAMES = Item("frames", bool, False, of="design")
    EARLY = Item("early", bool, False, of="design")
    AT_ONCE = Item("at_once", bool, False, of="design")
    FIRST = Item("x", str, problem=N_("no setting of this name can be varied"), of="design")
    FIRST_VALUES = Item("xs", list, of="design")
    SECOND = Item("y", str, problem=N_("no setting of this name can be varied"), of="design")
    SECOND_VALUES = Item("ys", list, of="design")
    AGAINST = Item("against", str, problem=N_("there is no such cell"), of="design")
    SHOW = Item("show", str, problem=N_("there is no such view"), of="experiment")
    MEASURE = Item("measure", str, problem=N_("there is no such measure"), of="experiment")
    SPLIT = Item("split", str, problem=N_("there is no such split"), of="experiment")
    CELL = Item("cell", int, problem=N_("there is no such cell"), of="experiment")
    EXPECTED = Item("expected", int, problem=N_("there is no such cell"), of="experiment")


class LossLab(Address):
    """Parameters of the loss lab."""

    SPACE = Item("space", str, "circle", N_("there is no such space"))
    LAYOUT = Item("start", str, "random", N_("there is no such start"))
    POINTS = Item("points", int, 30, N_("the lab has 6 to 60 points"))
    CLASSES = Item("classes", int, 3, N_("the lab has 2 to 4 classes"))
    SEED = Item("seed", int, 0, N_("a seed is a whole number from 0 to 9999"))
    FIRST = Item("a", str, "", N_("give a loss, λ, τ, the learning rate and, for some losses, α"))
    SECOND = Item("b", str, "", N_("give a loss, λ, τ, the learning rate and, for some losses, α"))
    BESIDE = Item("beside", bool, False)
    MOVED = Item("moved", str, "", N_("give the number of a point, its view and its position"))
    ANCHOR = Item("anchor", int, problem=N_("there is no such point"))
    STEP = Item("step", int, problem=N_("the lab runs 0 to 3,000 steps"))


class Lessons(Address):
    """Parameters of Lessons."""

    OPEN = Item("open", str, problem=N_("there is no such lesson, or the lesson has no such part"))
