"""Readers of the formats in which harnesses leave their trials."""
