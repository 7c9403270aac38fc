"""Attacks on a server that its visitors share, each of them refused."""
