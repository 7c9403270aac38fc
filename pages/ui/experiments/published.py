"""What was published, beside what is about to be run or was found."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.experiments.protocols.entry import Protocol
from core.messages import _
from pages.ui.parts import escaped


def published(protocol: Protocol) -> None:
    """A table for each that somebody published, with its setting and source."""
    if not protocol.published:
        return
    st.subheader(_("Figures of the papers and notes"))
    for number, table in enumerate(protocol.published):
        rows = pd.DataFrame([dict(zip(table.header, map(_, row), strict=True)) for row in table.rows])
        columns = {name: st.column_config.Column(_(name)) for name in table.header}
        key = f"published.{protocol.name}.{number}"
        st.dataframe(rows, hide_index=True, height="content", column_config=columns, key=key)
        st.caption(escaped(_("{setting}; {source}.", setting=_(table.setting), source=_(table.source))))
