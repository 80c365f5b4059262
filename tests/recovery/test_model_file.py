"""Models as JSON: the same probabilities to the last bit, and files that cannot be trusted refused in one line."""

from __future__ import annotations

import copy
import json
import math
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import faultbook
from faultbook.errors import DataError, FaultbookError
from faultbook.recovery.estimators import TARGETS, Estimators, fit
from faultbook.recovery.model_file import SCHEMA, load_model, save_model


def candidates(n: int = 30, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    base = {"task_id": [f"t{i:03d}" for i in range(n)], "condition": "clean", "replicate": 0, "delay": 1}
    outcomes = {target: rng.random(n) < 0.5 for target in TARGETS.values()}
    return pd.DataFrame(base | {"reached": True} | outcomes | {"x_a": rng.normal(size=n), "x_b": rng.random(n) * 1e-7})


FRAME = candidates()
FITTED = fit(FRAME)


def same(one: Estimators, other: Estimators) -> None:
    assert one.models == other.models
    for name in ("features", "penalty", "C", "n_folds", "seed", "n_rows", "n_tasks", "low", "high", "data_sha256"):
        assert getattr(one, name) == getattr(other, name)
    pd.testing.assert_frame_equal(one.notes, other.notes)


# ---- there and back ---------------------------------------------------------------------------------------------


@given(st.integers(0, 1000), st.sampled_from([1e-3, 0.1, 10.0]))
@settings(max_examples=10, deadline=None)
def test_probabilities_are_the_same_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, seed: int, c: float
) -> None:
    file = tmp_path_factory.mktemp("models") / "model.json"
    frame = candidates(seed=seed)
    fitted = fit(frame, C=c)
    loaded = load_model(save_model(fitted, file))
    same(fitted, loaded)
    pd.testing.assert_frame_equal(loaded.predict(frame), fitted.predict(frame), check_exact=True)
    text = file.read_text(encoding="utf-8")
    save_model(loaded, file)
    assert file.read_text(encoding="utf-8") == text


def test_base_rates_notes_and_generators_survive(tmp_path: Path) -> None:
    frame = FRAME.assign(is_error=True, x_one=1)
    fitted = fit(frame, n_folds=40, seed=np.random.default_rng(0))
    loaded = load_model(save_model(fitted, tmp_path / "model.json"))
    same(fitted, loaded)
    assert loaded.p_err.base_rate == 1.0
    assert loaded.seed is None
    assert len(loaded.notes) > 3
    empty = load_model(save_model(FITTED, tmp_path / "model.json")).notes
    assert empty.empty
    assert list(empty.columns) == ["model", "what", "reason"]


def test_predictions_are_not_in_the_file(tmp_path: Path) -> None:
    loaded = load_model(save_model(FITTED, tmp_path / "model.json"))
    with pytest.raises(FaultbookError, match="no out-of-fold predictions; fit them on the candidates again"):
        _ = loaded.out_of_fold
    assert "t000" not in (tmp_path / "model.json").read_text(encoding="utf-8")


def test_what_a_file_says_of_itself(tmp_path: Path) -> None:
    document = json.loads(save_model(FITTED, tmp_path / "model.json").read_text(encoding="utf-8"))
    assert (document["schema"], document["schema_version"]) == (SCHEMA, 1)
    assert set(document["versions"]) == {"faultbook", "numpy", "scikit-learn"}
    assert document["versions"]["faultbook"] == faultbook.__version__
    assert document["data"]["sha256"] == FITTED.data_sha256
    assert document["models"]["p1"]["target"] == "success_with"


# ---- written at once --------------------------------------------------------------------------------------------


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    file.write_text("old", encoding="utf-8")
    save_model(FITTED, file)
    same(load_model(file), FITTED)
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_what_cannot_be_written_leaves_all_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for target in (tmp_path / "none" / "model.json", tmp_path / "folder"):
        with pytest.raises(DataError, match="cannot be written"):
            save_model(FITTED, target)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


# ---- files that cannot be trusted -------------------------------------------------------------------------------


def changed(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], str]:
    def text(document: dict[str, Any]) -> str:
        change(document)
        return json.dumps(document)

    return text


MODEL = "models.p0"
FAULTS: list[tuple[Callable[[dict[str, Any]], str], str]] = [
    (changed(lambda d: d.pop("C")), "column 'C': this key is missing"),
    (changed(lambda d: d["models"]["p0"].pop("scale")), f"column '{MODEL}.scale': this key is missing"),
    (changed(lambda d: d.update(extra=1)), "column 'extra': no such key"),
    (changed(lambda d: d.update(schema="other")), "column 'schema'.*found 'other'"),
    (changed(lambda d: d.update(schema_version=2)), "column 'schema_version'.*found 2"),
    (changed(lambda d: d["models"]["p0"].update(intercept="0")), f"column '{MODEL}.intercept'.*found '0'"),
    (changed(lambda d: d["models"]["p0"].update(intercept=None)), f"column '{MODEL}.intercept'"),
    (changed(lambda d: d["models"]["p0"].update(intercept=math.nan)), "NaN is not a finite number"),
    (changed(lambda d: d["models"]["p0"].update(intercept=math.inf)), "Infinity is not a finite number"),
    (lambda d: json.dumps(d).replace('"intercept": ', '"intercept": 1e999, "b": '), "intercept'.*finite.*found inf"),
    (changed(lambda d: d["models"]["p0"].update(base_rate=1.2)), f"column '{MODEL}.base_rate'"),
    (changed(lambda d: d["models"]["p0"].update(scale=[0.0, 1.0])), f"column '{MODEL}.scale.0'.*greater than 0"),
    (changed(lambda d: d["models"]["p0"]["mean"].pop()), f"column '{MODEL}.mean': 1 numbers for 2 features"),
    (
        changed(lambda d: d["models"]["p0"].update(target="success_with")),
        "estimates 'success_with'",
    ),
    (changed(lambda d: d["models"].pop("p1")), "column 'models': missing or unknown: p1"),
    (changed(lambda d: d["models"].update(p2=d["models"]["p1"])), "column 'models': missing or unknown: p2"),
    (changed(lambda d: d["features"].append("x_c")), "column 'ranges': missing or unknown: x_c"),
    (changed(lambda d: d.update(features=["x_a", "success_with"])), "column 'success_with': not a feature"),
    (changed(lambda d: d.update(features=["x_a", "x_a"])), "column 'x_a': named twice"),
    (changed(lambda d: d["ranges"]["x_a"].update(low=9.0)), "column 'ranges.x_a': from 9.0"),
    (changed(lambda d: d["data"].update(sha256="0")), "column 'data.sha256'"),
    (changed(lambda d: d.update(penalty="l1")), "column 'penalty'"),
    (lambda d: json.dumps(d).replace('"seed": 0', '"seed": 0, "seed": 1'), "the key 'seed' stands twice"),
    (lambda d: json.dumps(d)[:-9], "row 1: not JSON"),
    (lambda _: "", "not JSON"),
    (lambda _: "[]", r"not a model file \(found \[\]\)"),
    (lambda _: "null", "not a model file"),
    (lambda _: "[" * 100_000, "nested too deeply"),
    (lambda _: "9" * 5_000, "too many digits"),
    (lambda _: "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "not JSON"),
]


@pytest.mark.parametrize(("fault", "said"), FAULTS)
def test_faults_are_located_in_one_line(tmp_path: Path, fault: Callable[[dict[str, Any]], str], said: str) -> None:
    file = save_model(FITTED, tmp_path / "model.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(fault(copy.deepcopy(document)), encoding="utf-8")
    with pytest.raises(DataError, match=said) as error:
        load_model(file)
    assert str(error.value).startswith(str(file))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400 + len(str(file))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        load_model(tmp_path / "none.json")
    with pytest.raises(DataError, match="no such file"):
        load_model(tmp_path)
    file = tmp_path / "pickle.json"
    file.write_bytes(b"\x80\x04\x95\xff")
    with pytest.raises(DataError, match="not UTF-8"):
        load_model(file)
    with file.open("wb") as large:
        large.truncate(11 * 2**20)
    with pytest.raises(DataError, match="larger than 10 MiB"):
        load_model(file)


def test_numbers_without_a_point_are_numbers(tmp_path: Path) -> None:
    file = save_model(FITTED, tmp_path / "model.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    document["models"]["p0"]["intercept"] = 0
    file.write_text(json.dumps(document), encoding="utf-8")
    assert load_model(file).p0.intercept == 0


def test_extreme_numbers_in_a_file_hold_and_do_not_warn(tmp_path: Path) -> None:
    file = save_model(FITTED, tmp_path / "model.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    document["models"]["p0"].update(scale=[1e-308, 1e-308], coefficient=[1e308, -1e308])
    file.write_text(json.dumps(document), encoding="utf-8")
    p0 = load_model(file).predict(FRAME)["p0"]
    assert (p0.isna() | p0.between(0, 1)).all()
