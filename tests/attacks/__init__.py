"""Attacks on a shared server. Each must be refused."""
