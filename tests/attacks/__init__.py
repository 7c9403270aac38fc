"""Attacks on a server that its visitors share, all of them refused."""
