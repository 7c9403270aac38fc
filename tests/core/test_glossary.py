"""Terms of the glossary: each has its sentence, formula and figure."""

from __future__ import annotations

from xml.etree import ElementTree

from core.glossary import GLOSSARY, PICTURES, Term, as_markdown
from tests.cases import each


def test_there_is_a_picture_and_a_title_for_each_and_no_other_picture() -> None:
    assert {path.name for path in PICTURES.iterdir()} == {term.path.name for term in GLOSSARY.values()}
    assert len({term.title for term in GLOSSARY.values()}) == len(GLOSSARY)


def test_the_page_in_docs_has_the_terms_of_the_app() -> None:
    page = (PICTURES.parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert page == as_markdown()  # else `make glossary`


@each("term", GLOSSARY.values())
class TestEach:
    def test_it_is_one_sentence_and_one_formula(self, term: Term) -> None:
        assert term.sentence.endswith(".")
        assert term.sentence.count(". ") == 0
        assert term.formula.count("{") == term.formula.count("}") > 0 or "{" not in term.formula
        assert "$" not in term.formula

    def test_its_picture_is_small_and_only_a_picture(self, term: Term) -> None:
        assert term.path.stat().st_size < 8_000
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.parse(term.path).iter()}
        assert tags <= {"svg", "path", "circle", "rect"}
        assert term.picture.endswith(".")
