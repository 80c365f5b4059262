"""Harnesses compared: trials of interrupted runs, on the same pairs, with nothing filled in."""
