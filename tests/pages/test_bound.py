"""Controls that the address restores."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.pages.test_compare import address


def script() -> None:
    import streamlit as st

    from pages.ui.address import Item
    from pages.ui.bound import bound, forget

    neighbours = Item("k", int, 10, "it is 1 to 20")
    if st.button("Forget"):
        forget([neighbours])
    most = st.number_input("Most", 1, 20, 20)
    value, tied = bound(neighbours, range(1, int(most) + 1))
    if st.checkbox("Drawn", value=True):
        st.slider("Neighbours", 1, int(most), **tied.by_value)
    st.text(f"k is {value}")


def opened(**query: str) -> AppTest:
    app = AppTest.from_function(script, default_timeout=60)
    app.query_params.update(query)
    return app.run()


def test_the_address_is_the_default_of_the_widget_in_every_answer() -> None:
    """A browser that receives two answers at once draws only the second. Values given only in the first are lost."""
    app = opened(k="7")
    for _ in range(3):
        assert not app.slider[0].proto.set_value
        assert list(app.slider[0].proto.default) == [7]
        assert app.slider[0].value == 7
        app.run()


def test_a_forgotten_control_is_another_widget_at_its_default() -> None:
    app = opened(k="7")
    before = app.slider[0].id
    app.button[0].click().run()
    assert app.slider[0].id != before
    assert (app.text[0].value, app.slider[0].value, address(app).get("k")) == ("k is 10", 10, None)
    app.slider[0].set_value(4).run()
    assert app.text[0].value == "k is 4"


def test_other_options_are_another_widget_at_what_the_address_says() -> None:
    app = opened(k="7")
    app.slider[0].set_value(9).run()
    before = app.slider[0].id
    app.number_input[0].set_value(12).run()
    assert app.slider[0].id != before
    assert (app.slider[0].max, app.slider[0].value) == (12, 9)


def test_a_control_that_was_not_drawn_for_a_while_comes_back_as_it_was() -> None:
    app = opened()
    app.slider[0].set_value(5).run()
    app.checkbox[0].uncheck().run()
    assert app.text[0].value == "k is 5"
    app.run()
    assert app.text[0].value == "k is 5"
    app.checkbox[0].check().run()
    assert (app.text[0].value, app.slider[0].value, address(app).get("k")) == ("k is 5", 5, "5")


def relabelled() -> None:
    import streamlit as st

    from pages.ui.address import Item
    from pages.ui.bound import bound

    names = {"a": "First", "b": "Second" if st.checkbox("Rename") else "Other"}
    value, tied = bound(Item("which", str, "a"), names, labels=names.values())
    st.radio("Which", list(names), format_func=names.__getitem__, **tied.by_index)
    st.text(f"it is {value}")


def test_a_choice_whose_label_changes_stays_chosen() -> None:
    """A browser identifies an option only by its label. A choice with a missing label is lost."""
    app = AppTest.from_function(relabelled, default_timeout=60).run()
    app.radio[0].set_value("b").run()
    assert app.text[0].value == "it is b"
    app.checkbox[0].check().run()
    assert app.text[0].value == "it is b"
    assert app.radio[0].value == "b"
    assert app.radio[0].options == ["First", "Second"]
