"""Runs side by side: what differs in their settings, their scores over seeds, their maps turned onto one another."""
