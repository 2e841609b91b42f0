from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from hamlet import evaluate


def test_frame():
    """The frame's rows give the figures beside it."""
    frame = evaluate(generate=1500, bad_feed=700, table_bits=12, experts="lean")
    metrics = frame.attrs["metrics"]
    assert frame.columns.tolist() == ["id", "label", "p", "log_odds", "lo", "hi"]
    assert len(frame) == metrics["events"] == 1500
    assert (frame.label == "spam").sum() == metrics["spam"]
    right = np.where(frame.label == "spam", frame.p, 1 - frame.p).clip(1e-6, 1)
    assert math.isclose(-np.log(right).mean(), metrics["log_loss"], rel_tol=1e-6)
    assert (frame.lo <= frame.p).all() and (frame.p <= frame.hi).all()
    assert {"kind", "state", "event"} <= set(frame.attrs["alerts"][0])


def test_names_stay_names():
    """Ids that look like numbers or gaps are kept as they are."""
    ids = ["007", "NA", "1e3", "a,b", ""]
    events = [{"id": i, "label": "spam", "text": "a"} for i in ids[:4]]
    frame = evaluate(events, table_bits=8)
    assert frame.id.tolist() == ids[:4]
    assert pd.api.types.is_float_dtype(frame.p)
    with pytest.raises(ValueError):
        evaluate("file", events)
