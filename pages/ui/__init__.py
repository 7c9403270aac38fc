"""Components of the Streamlit pages."""
