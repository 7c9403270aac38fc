"""Pieces that only Streamlit pages use."""
