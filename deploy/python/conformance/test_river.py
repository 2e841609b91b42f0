"""River's own checks of estimators, and what they do not ask."""

from __future__ import annotations

import pytest
from river import compose, datasets, evaluate, metrics
from river.checks import yield_checks

from hamlet import StreamClassifier


# All checks that River chooses for a classifier of two classes.
@pytest.mark.parametrize("check", list(yield_checks(StreamClassifier())), ids=lambda c: c.__name__)
def test_river_check(check):
    check(StreamClassifier())


def test_phishing():
    """It works in River's tools: progressive validation, and pipelines."""
    def accuracy(model):
        return evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get()

    names = list(next(iter(datasets.Phishing()))[0])
    assert accuracy(StreamClassifier()) > 0.82
    assert accuracy(StreamClassifier(dense=names)) > 0.85
    assert accuracy(compose.Select(*names[:3]) | StreamClassifier()) > 0.7
