"""The made-up incident of the rule."""

from __future__ import annotations

import pytest

from faultbook.diagnosis.illustration import rule_illustration


def test_the_rule_on_two_causes() -> None:
    # ITBench-AA document, section 2: A alone misses B; each further entity costs precision
    frame = rule_illustration()
    assert frame["submission"].tolist() == ["A", "A + B", "A + B + C", "A + B + C + D"]
    assert frame["score"].tolist() == pytest.approx([0, 1, 2 / 3, 1 / 2])
