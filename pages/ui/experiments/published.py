"""What was published, beside what is about to be run or was found."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.experiments.protocols.entry import Protocol
from pages.ui.parts import escaped


def published(protocol: Protocol) -> None:
    """A table for each that somebody published, with its setting and source."""
    if not protocol.published:
        return
    st.subheader("What was published")
    for number, table in enumerate(protocol.published):
        rows = pd.DataFrame([dict(zip(table.header, row, strict=True)) for row in table.rows])
        st.dataframe(rows, hide_index=True, height="content", key=f"published.{protocol.name}.{number}")
        st.caption(escaped(f"{table.setting}; {table.source}."))
