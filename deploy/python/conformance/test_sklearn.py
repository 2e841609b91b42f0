"""scikit-learn's own checks of estimators, and what they do not ask."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from hamlet import Classifier, evaluate

TEXTS = [f"{'prize' if i % 3 == 0 else 'lunch'} number {i % 7}" for i in range(120)]
LABELS = ["spam" if i % 3 == 0 else "ham" for i in range(120)]


# All checks that scikit-learn chooses by the tags: none is expected to fail. It leaves out
# what is about several classes, several outputs, regression and sample weights.
@parametrize_with_checks([Classifier()])
def test_sklearn_check(estimator, check):
    check(estimator)


def test_cross_validation():
    """It works in scikit-learn's tools, in other processes too, and is not worse than a linear model."""
    x, y = load_breast_cancer(return_X_y=True)
    assert cross_val_score(Classifier(), x, y, cv=4, n_jobs=2).mean() > 0.95
    search = GridSearchCV(Classifier(), {"config": [None, {"vector_ensembles": []}]}, cv=3, scoring="neg_log_loss").fit(x, y)
    assert search.best_score_ > -0.2


def test_rows_in_order_are_a_stream(tmp_path):
    """Without shuffling, fit and partial_fit make the model of hamlet eval."""
    x, y = load_breast_cancer(return_X_y=True)
    names = [f"x{j}" for j in range(x.shape[1])]
    table = pd.DataFrame(x, columns=names).assign(label=y)
    path = tmp_path / "rows.csv"
    table.to_csv(path, index=False)
    metrics = evaluate(path, format="csv").attrs["metrics"]
    whole = Classifier(shuffle=False).fit(x, y)
    parts = Classifier()
    for rows in np.array_split(np.arange(len(y)), 5):
        parts.partial_fit(x[rows], y[rows], classes=[0, 1])
    assert np.array_equal(whole.decision_function(x), parts.decision_function(x))
    assert metrics["events"] == whole.model_.info()["events"] == len(y)
    # The ids differ, so the bytes do; the answers do not.
    scored = evaluate(path, format="csv")
    before = Classifier().partial_fit(x[:500], y[:500], classes=[0, 1])
    assert before.predict_proba(x[500:501])[0, 1] == scored.p[500]


def test_intervals_and_reasons():
    x, y = load_breast_cancer(as_frame=True, return_X_y=True)
    model = Classifier().fit(x, y)
    p = model.predict_proba(x)[:, 1]
    wide, narrow = model.predict_interval(x, 0.99), model.predict_interval(x, 0.5)
    assert np.all(wide[:, 0] <= narrow[:, 0]) and np.all(narrow[:, 1] <= wide[:, 1])
    assert np.all(narrow[:, 0] <= p) and np.all(p <= narrow[:, 1])
    [why] = model.explain(x.iloc[:1])
    assert why["p"] == p[0]
    named = {reason["name"] for reason in why["reasons"]}
    assert any("mean radius" in name for name in named), named
    with pytest.raises(ValueError, match="level"):
        model.predict_interval(x, 1.5)
    assert model.explain(x.iloc[:0].to_numpy().tolist() or x.iloc[:1], words=0)[0].get("words") is None


def test_texts():
    """Texts, mails and dicts are learnt as such; copies answer alike."""
    for kind in (list, np.array, pd.Series):
        model = Classifier().fit(kind(TEXTS), kind(LABELS))
        assert model.classes_.tolist() == ["ham", "spam"]
        assert model.predict(["a prize", "for lunch"]).tolist() == ["spam", "ham"]
        assert model.explain(["a prize"])[0]["words"][0]["text"] == "prize"
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(twin.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert not hasattr(clone(model), "model_")
    mails = [f"Subject: {text}\r\n\r\nhello\r\n".encode() for text in TEXTS]
    assert Classifier().fit(mails, LABELS).score(mails, LABELS) == 1
    dicts = [{"word": text.split()[0], "n": i % 7} for i, text in enumerate(TEXTS)]
    assert Classifier().fit(dicts, LABELS).score(dicts, LABELS) == 1
    with pytest.raises(ValueError, match="has learnt texts"):
        model.predict(np.ones((1, 2)))
    with pytest.raises(ValueError, match="has learnt texts"):
        model.partial_fit(np.ones((1, 2)), ["ham"])
    assert model.fit(pd.DataFrame({"a": [0.0, 1.0]}), LABELS[:2]).fit(TEXTS, LABELS).predict(["a prize"]).tolist() == ["spam"]
    with pytest.raises(ValueError, match="inconsistent"):
        Classifier().fit(TEXTS, LABELS[1:])
    with pytest.raises(TypeError):
        Classifier().fit((text for text in TEXTS), LABELS)
    with pytest.raises(NotFittedError):
        Classifier().predict(TEXTS)


def test_hashed_columns():
    """A sparse matrix and a dense one of the same numbers are the same rows, with a zero or without."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    x = (rng.random((300, 40)) < 0.1) * rng.normal(1, 0.2, (300, 40))
    x[:, 0] = y * (rng.random(300) < 0.8)
    columns = sparse.csr_matrix(x)
    for config in (None, {"dense": ["x0"]}):
        hashed = Classifier(config).fit(columns, y)
        assert hashed.score(columns, y) > 0.8
        assert np.array_equal(hashed.predict_proba(columns), hashed.predict_proba(x))
        stored = columns.copy()
        stored.data[:5] = 0
        gone = stored.copy()
        gone.eliminate_zeros()
        assert np.array_equal(hashed.predict_proba(stored), hashed.predict_proba(gone))
    dense = Classifier().fit(x, y)
    assert np.array_equal(dense.predict_proba(columns), dense.predict_proba(x))
    wide = sparse.random(50, 5000, 0.01, format="csr", random_state=0)
    assert Classifier().fit(wide.toarray(), y[:50]).model_.info()["config"]["dense"] == []


def test_duplicate_entries():
    """Entries of a sparse matrix at one place add up, and the matrix stays as it is."""
    y = np.arange(60) % 2
    rows, columns = np.repeat(np.arange(60), 3), np.tile([2, 0, 2], 60)
    values = np.stack([y + 1, y % 3, 2 * y], axis=1).ravel().astype(float)
    twice = sparse.csr_matrix((values, columns, np.arange(0, 181, 3)), shape=(60, 4))
    once = sparse.csr_matrix(sparse.coo_matrix((values, (rows, columns)), shape=(60, 4)).toarray())
    assert (twice.nnz, once.has_canonical_format) == (180, True)
    fitted = Classifier().fit(twice, y)
    assert twice.nnz == 180
    assert np.array_equal(fitted.decision_function(twice), Classifier().fit(once, y).decision_function(once))


def test_failed_fit():
    """A failed fit changes nothing, and a failed first partial_fit leaves nothing fitted."""
    texts = Classifier().fit(TEXTS, LABELS)
    matrix = Classifier().fit(pd.DataFrame({"a": np.arange(4.0)}), [0, 0, 1, 1])
    x = np.arange(8.0).reshape(4, 2)
    for model, rows in ((texts, TEXTS[:9]), (matrix, [[0.5], [2.5]])):
        before = model.predict_proba(rows)
        columns = getattr(model, "feature_names_in_", None)
        for wrong in (
            lambda: model.fit(x, [0, 0, 1, 1], source=["desk"]),
            lambda: model.fit(x, [1, 1, 1, 1]),
            lambda: model.fit([{"a": 1.0}, {"a": 1e999}], [0, 1]),  # hamlet refuses the second
            lambda: model.partial_fit(rows, model.classes_[[0] * len(rows)], source=["desk"] * (len(rows) + 1)),
        ):
            with pytest.raises(ValueError):
                wrong()
            assert np.array_equal(model.predict_proba(rows), before)
            assert getattr(model, "feature_names_in_", None) is columns
    first = Classifier()
    for wrong in ({"source": ["desk"]}, {"classes": [2, 3]}):
        with pytest.raises(ValueError):
            first.partial_fit(x, [0, 0, 1, 1], **{"classes": [0, 1], **wrong})
        with pytest.raises(NotFittedError):
            first.predict(x)
        assert not hasattr(first, "n_features_in_")
    assert first.partial_fit(TEXTS, LABELS, classes=["ham", "spam"]).predict(["a prize"]).tolist() == ["spam"]


def test_no_rows():
    """No texts have no answers. A matrix without rows is refused, as scikit-learn does."""
    model = Classifier().fit(TEXTS, LABELS)
    for none in ([], np.array([]), pd.Series([], dtype=object)):
        assert model.predict(none).shape == model.decision_function(none).shape == (0,)
        assert model.predict(none).dtype == model.classes_.dtype
        assert model.predict_proba(none).shape == model.predict_interval(none).shape == (0, 2)
        assert model.explain(none) == []
        assert model.partial_fit(none, none).model_.info()["events"] == len(TEXTS)
    for wrong in (np.ones((0, 2)), ""):
        with pytest.raises(ValueError):
            model.predict(wrong)
    for none in ([], np.ones((0, 2))):
        with pytest.raises(ValueError, match="0 sample|1D array"):
            Classifier().fit(np.ones((4, 2)), [0, 0, 1, 1]).predict(none)


def test_sources():
    """A source that lies is believed less."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 1500)
    x = rng.normal(size=(1500, 5)) + 1.5 * y[:, None]
    source = np.where(np.arange(1500) % 3 == 0, "liar", "desk")
    given = np.where(source == "liar", 1 - y, y)
    alike = Classifier().fit(x[:1000], given[:1000])
    told = Classifier().fit(x[:1000], given[:1000], source=source[:1000])
    losses = [log_loss(y[1000:], m.predict_proba(x[1000:])) for m in (alike, told)]
    assert losses[1] < losses[0] / 2, losses
    with pytest.raises(ValueError, match="inconsistent"):
        Classifier().fit(x, y, source=["desk"])


def test_labels_refused():
    x, y = [[0.0], [1.0], [2.0]], [0, 1, 2]
    for call in (
        lambda: Classifier().fit(x, y), lambda: Classifier().fit(x, [1, 1, 1]), lambda: Classifier().partial_fit(x, y, classes=y),
        lambda: Classifier().partial_fit(x, [0, 1, 1]), lambda: Classifier().partial_fit(x, [0, 0, 2], classes=[0, 1]),
        lambda: Classifier().partial_fit(x, [0, 0, 1], classes=[0, 1]).partial_fit(x, [0, 0, 1], classes=[0, 2]),
    ):
        with pytest.raises(ValueError, match="class"), warnings.catch_warnings():
            warnings.simplefilter("error")
            call()
    # A part of a stream may have one class alone.
    model = Classifier().partial_fit(x, [0, 0, 0], classes=[0, 1]).partial_fit(x, [1, 1, 1])
    assert model.model_.info()["spam"] == 3
