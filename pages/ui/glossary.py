"""Terms explained where they are used: a card that opens over a term, and the list of all."""

from __future__ import annotations

import streamlit as st

from core.glossary import GLOSSARY, Term
from core.messages import _
from pages.ui.reads import cached

COLUMNS = 3


def card(name: str, before: str = "") -> str:
    """What a term means, as Markdown for the help of whatever is called so.

    Args:
        before: what the help says beside that; translated here where it is only marked.
    """
    return "\n\n".join(filter(None, [_(before), _as_markdown(GLOSSARY[name])]))


def explained(*names: str) -> None:
    """A line of terms; each opens its card."""
    with st.container(horizontal=True, gap="small", key=f"explained_{names[0]}"):
        for name in names:
            st.caption(_(GLOSSARY[name].title), help=card(name), width="content")


def glossary() -> None:
    """Draw the cards of all terms."""
    every = list(GLOSSARY.values())
    for first in range(0, len(every), COLUMNS):
        for place, term in zip(st.columns(COLUMNS), every[first : first + COLUMNS], strict=False):
            with place, st.container(border=True, height="stretch"):
                st.markdown(_as_markdown(term))


@cached(64)
def _as_markdown(term: Term) -> str:
    picture = f"![{_(term.picture)}](app/static/glossary/{term.path.name})"
    return f"**{_(term.title)}**  \n{_(term.sentence)}\n\n$${term.formula}$$\n\n{picture}"
