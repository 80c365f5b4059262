"""A made-up incident with two causes that shows the rule: synthetic, and called so wherever it is shown."""

from __future__ import annotations

import pandas as pd

from faultbook.diagnosis.score import score
from faultbook.diagnosis.truth import Document, assemble, read_v1
from faultbook.tables import Runs, Submissions, typed

SUBMISSIONS = (("A",), ("A", "B"), ("A", "B", "C"), ("A", "B", "C", "D"))


def rule_illustration() -> pd.DataFrame:
    """Score the submissions A; A, B; A, B, C; A, B, C, D against the truth {A, B}.

    Returns
    -------
    DataFrame
        submission ("A + B"), score: 0, 1, 2/3 and 1/2 (ITBench-AA document, section 2).
    """
    document = Document("synthetic", "made up", "")
    read_v1({"groups": [{"id": n, "kind": "Pod", "name": n, "root_cause": n in "AB"} for n in "ABCD"]}, document)
    labels = [" + ".join(names) for names in SUBMISSIONS]
    runs = typed([(label, "synthetic", 0, "scored", None, None) for label in labels], Runs)
    rows = [
        (label, "synthetic", 0, position, name, None, "Pod", name, None, "confirmed")
        for label, names in zip(labels, SUBMISSIONS, strict=True)
        for position, name in enumerate(names)
    ]
    scores = score(typed(rows, Submissions), runs, assemble([document]))
    return pd.DataFrame({"submission": labels, "score": scores.set_index("model").loc[labels, "score"].to_numpy()})
