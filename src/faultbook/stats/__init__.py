"""Statistics that several domains share: intervals, paired tests, bounds, and the inversion of printed numbers."""
