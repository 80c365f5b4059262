"""What can be recomputed from the numbers that MP-Bench prints, and from nothing else."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from faultbook.attribution.ndcg import adjusted_for_chance
from faultbook.errors import FaultbookError

SPLITS = ("hand", "auto")
FLAGGED_BY = {
    "steps flagged by all three": "all",
    "steps flagged by exactly two": "two",
    "steps flagged by one": "one",
}
_SINGLE = re.compile(r"(hand|auto) N=(\d+)")
_DRAWS = 3  # samples of each model behind table 2 and of each member behind table 4


def adjusted_scores(reported: pd.DataFrame, k: str = "5") -> pd.DataFrame:
    """Rescale the printed nDCG between the printed random row and 1, so that the two splits can be compared.

    Parameters
    ----------
    reported : DataFrame
        Printed cells with row (model), column ("hand nDCG@5") and value, and a row "Random".
    k : str
        "5" or "full".

    Returns
    -------
    DataFrame
        model, then for each split the printed value, the printed chance level and the adjusted value.

    Raises
    ------
    FaultbookError
        If a column or the row "Random" is missing.
    """
    wide = reported.pivot_table(index="row", columns="column", values="value", sort=False)
    names = {split: f"{split} nDCG@{k}" for split in SPLITS}
    missing = [name for name in names.values() if name not in wide]
    if missing or "Random" not in wide.index:
        raise FaultbookError(f"no column {' and no '.join(missing)}" if missing else "no row 'Random' among the models")
    models = wide.drop(index="Random")
    parts: dict[str, Any] = {"model": list(models.index)}
    for split, name in names.items():
        chance = wide.loc["Random", name]
        parts |= {f"{split}_printed": models[name].to_numpy(), f"{split}_chance": chance}
        parts[f"{split}_adjusted"] = adjusted_for_chance(models[name], chance)
    return pd.DataFrame(parts)


def printed_shares(reported: pd.DataFrame, source: str) -> pd.DataFrame:
    """The printed shares of flagged steps by how many annotators flagged them.

    Parameters
    ----------
    reported : DataFrame
        Printed cells with row ("steps flagged by one") and value.
    source : str
        What to call them.

    Returns
    -------
    DataFrame
        source, flagged_by, share: rows as `plot.plot_shares` takes them.
    """
    cells = reported[reported["row"].isin(FLAGGED_BY)]
    return pd.DataFrame({"source": source, "flagged_by": cells["row"].map(FLAGGED_BY), "share": cells["value"]})


def budgets(reported: pd.DataFrame) -> pd.DataFrame:
    """Hold the printed combinations of models against single models with about as many samples.

    Parameters
    ----------
    reported : DataFrame
        Printed cells of single models (column "hand N=7") and of combinations (row "A + B + C", column "hand").

    Returns
    -------
    DataFrame
        split, combination, samples (three of each member), printed, and for each printed N the best single model with
        that many samples: its name, its value, and the difference.
    """
    singles = reported[reported["column"].str.fullmatch(_SINGLE.pattern)].copy()
    singles[["split", "n"]] = singles["column"].str.extract(_SINGLE.pattern).to_numpy()
    mixed = reported[reported["row"].str.contains(" + ", regex=False) & reported["column"].isin(SPLITS)]
    rows = []
    for cell in mixed.to_dict("records"):
        row = {"split": cell["column"], "combination": cell["row"]}
        row |= {"samples": _DRAWS * (cell["row"].count(" + ") + 1), "printed": cell["value"]}
        for n, part in singles[singles["split"] == cell["column"]].groupby("n"):
            best = part.loc[part["value"].idxmax()]
            row |= {f"best_single_{n}": best["row"], f"single_{n}": best["value"]}
            row[f"over_single_{n}"] = cell["value"] - best["value"]
        rows.append(row)
    return pd.DataFrame(rows).sort_values("split", ascending=False, kind="stable").reset_index(drop=True)


def filter_tables(n: int, legitimate: int, agreement: int, kappa: str) -> pd.DataFrame:
    """Every table of verdicts, filter against person, that gives the printed agreement and κ.

    Parameters
    ----------
    n : int
        Single flags that both judged.
    legitimate : int
        Those that the person calls legitimate.
    agreement : int
        Those on which the two agree.
    kappa : str
        Cohen's κ as printed: its digits decide what still fits.

    Returns
    -------
    DataFrame
        One row a table: legitimate_removed, noise_kept, kappa, share_removed (of the n, by the filter).

    Raises
    ------
    FaultbookError
        If the counts do not fit together.
    """
    if not 0 <= legitimate <= n or not 0 <= agreement <= n or n < 1:
        raise FaultbookError(f"{legitimate} legitimate and {agreement} equal verdicts of {n}; give counts up to {n}")
    digits = len(kappa.partition(".")[2])
    rows = []
    for legitimate_removed in range(n - agreement + 1):
        noise_kept = n - agreement - legitimate_removed
        if legitimate_removed > legitimate or noise_kept > n - legitimate:
            continue
        kept = (legitimate - legitimate_removed + noise_kept) / n
        by_chance = kept * legitimate / n + (1 - kept) * (1 - legitimate / n)
        value = (agreement / n - by_chance) / (1 - by_chance) if by_chance < 1 else float("nan")
        if f"{value:.{digits}f}" == kappa:
            rows.append((legitimate_removed, noise_kept, value, 1 - kept))
    return pd.DataFrame(rows, columns=["legitimate_removed", "noise_kept", "kappa", "share_removed"])
