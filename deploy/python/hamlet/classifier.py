"""A classifier by scikit-learn's conventions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Optional, Union

try:
    import numpy as np
    from numpy.random import RandomState
    from numpy.typing import ArrayLike, NDArray
    from scipy.sparse import issparse
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data
except ImportError as e:
    raise ImportError("hamlet.Classifier needs scikit-learn 1.6 or later: pip install 'hamlet[sklearn]'") from e

from .events import body
from .model import Model


class Classifier(ClassifierMixin, BaseEstimator):
    """A streaming Bayesian classifier of two classes, with intervals and reasons.

    X is a matrix of numbers, dense or sparse, or a list of texts (str), mails (bytes) or
    dicts of numbers. Columns of a dense matrix enter the model as they are. Those of a
    sparse matrix, or of more than 4,096 columns, are hashed, and their zeros left out.

    ``fit`` learns each row once. ``partial_fit`` learns further rows, in their order.
    Of the classes, in their order, the second one counts as spam: ``classes_[1]``.

    Parameters
    ----------
    config : dict, optional
        Keys of the model's configuration, which ``hamlet eval --keys`` lists. ``dense``
        names the columns that are not hashed.
    shuffle : bool, default True
        Whether ``fit`` permutes the rows first. A table is often sorted by class, which
        no stream is. A table that is a stream wants False.
    random_state : int or RandomState, default 0
        Of the permutation.
    binary : str, optional
        Path of the program hamlet.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The labels.
    model_ : hamlet.Model
        The model. It is pickled as its bytes.
    n_features_in_, feature_names_in_
        As in scikit-learn; absent for texts, mails and dicts.

    Examples
    --------
    >>> from hamlet import Classifier
    >>> filter = Classifier().fit(["You won", "lunch?"], ["spam", "ham"])
    >>> filter.predict_interval(["You won a prize"]).shape
    (1, 2)
    """

    classes_: NDArray[Any]
    model_: Model
    n_features_in_: int

    def __init__(
        self, config: Optional[Mapping[str, Any]] = None, shuffle: bool = True,
        random_state: Union[int, RandomState, None] = 0, binary: Optional[str] = None,
    ) -> None:
        self.config = config
        self.shuffle = shuffle
        self.random_state = random_state
        self.binary = binary

    def fit(self, X: Any, y: ArrayLike, source: Optional[ArrayLike] = None) -> Classifier:
        """Learn the rows of X with the labels y, as a new model.

        ``source`` names who gave each label. The model estimates how often each source
        is wrong. After an error the classifier is as it was.
        """
        with _unchanged_on_error(self):
            self._fit(X, y, source)
        return self

    def _fit(self, X: Any, y: ArrayLike, source: Optional[ArrayLike]) -> None:
        rows, labels = self._rows(X, y)
        classes = np.unique(labels)
        if len(classes) != 2:
            one = "one class" if len(classes) == 1 else f"{len(classes)} classes"
            raise ValueError(f"Classifier needs 2 classes; the data has {one}. Only binary classification is supported.")
        self.classes_ = classes
        self.model_ = self._new_model(X)
        order = np.arange(len(labels))
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(len(labels))
        self._learn(rows, labels, source, order)

    def partial_fit(
        self, X: Any, y: ArrayLike, classes: Optional[ArrayLike] = None, source: Optional[ArrayLike] = None,
    ) -> Classifier:
        """Learn further rows in their order. The first call names both ``classes``."""
        with _unchanged_on_error(self):
            self._partial_fit(X, y, classes, source)
        return self

    def _partial_fit(self, X: Any, y: ArrayLike, classes: Optional[ArrayLike], source: Optional[ArrayLike]) -> None:
        first = not hasattr(self, "classes_")
        if first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            names = np.unique(np.asarray(classes))
            if len(names) != 2:
                raise ValueError(f"Only binary classification is supported. classes has {len(names)} classes.")
        else:
            names = self.classes_
            if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), names):
                raise ValueError(f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {names!r}")
        rows, labels = self._rows(X, y, reset=first)
        strange = np.setdiff1d(labels, names)
        if len(strange):
            raise ValueError(f"y has the labels {strange.tolist()}, which are not in classes {names.tolist()}.")
        if first:
            self.classes_ = names
            self.model_ = self._new_model(X)
        self._learn(rows, labels, source, np.arange(len(labels)))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, a column each."""
        p = np.array([a["p"] for a in self._score(X)], dtype=np.float64)
        return np.column_stack([1 - p, p])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the log-odds of ``classes_[1]``, in nats."""
        return np.array([a["log_odds"] for a in self._score(X)], dtype=np.float64)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the more probable class of each row."""
        spam = self.decision_function(X) > 0
        labels: NDArray[Any] = self.classes_[spam.astype(int)]
        return labels

    def predict_interval(self, X: Any, level: float = 0.9) -> NDArray[np.float64]:
        """Return an interval of the probability of ``classes_[1]`` for each row, (n, 2).

        It is the interval of that level of the model's belief, and contains the
        probability.
        """
        return np.array([a["interval"] for a in self._score(X, level)], dtype=np.float64).reshape(-1, 2)

    def explain(self, X: Any, words: int = 5) -> list[dict[str, Any]]:
        """Return p, interval, reasons and words of each row: see :meth:`Model.explain`."""
        check_is_fitted(self)
        return self.model_.explain(self._bodies(X), words=words)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.dict = True
        return tags

    def _score(self, X: Any, level: float = 0.9) -> list[dict[str, Any]]:
        check_is_fitted(self)
        return self.model_.score(self._bodies(X), level)

    def _new_model(self, X: Any) -> Model:
        """Return a model for rows like X, whose names :meth:`_rows` has taken."""
        config = dict(self.config or {})
        if hasattr(self, "n_features_in_") and "dense" not in config:
            hashed = issparse(X) or self.n_features_in_ > 4096
            config["dense"] = [] if hashed else self._names()
        self._dense = frozenset(config.get("dense") or ())
        return Model(config, binary=self.binary)

    def _names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{j}" for j in range(self.n_features_in_)]

    def _learn(self, rows: Any, labels: NDArray[Any], source: Optional[ArrayLike], order: NDArray[Any]) -> None:
        sources = None if source is None else column_or_1d(np.asarray(source, dtype=object))
        check_consistent_length(labels, sources)
        bodies = rows if isinstance(rows, list) else list(self._vectors(rows))
        spam = labels == self.classes_[1]

        def events() -> Iterator[dict[str, Any]]:
            for i in order:
                event = {**bodies[i], "label": "spam" if spam[i] else "ham"}
                if sources is not None:
                    event["source"] = str(sources[i])
                yield event

        self.model_.learn(events())

    def _rows(self, X: Any, y: ArrayLike, reset: bool = True) -> tuple[Any, NDArray[Any]]:
        """Return X as a matrix of numbers or a list of bodies, and y as labels."""
        if _holds_bodies(X) or not reset and self._holds_none(X):
            if reset:
                for name in ("n_features_in_", "feature_names_in_"):
                    self.__dict__.pop(name, None)
            rows: Any = [body(x) for x in X]
            labels = column_or_1d(y, warn=True)
            check_consistent_length(rows, labels)
        else:
            if not reset:
                self._check_columns()
            rows, labels = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=np.float64)
            labels = column_or_1d(labels, warn=True)
        check_classification_targets(labels)
        if type_of_target(labels) == "multiclass":
            raise ValueError(f"Only binary classification is supported. The type of the target is {type_of_target(labels)}.")
        return rows, labels

    def _bodies(self, X: Any) -> Iterator[dict[str, Any]]:
        if _holds_bodies(X) or self._holds_none(X):
            return (body(x) for x in X)
        self._check_columns()
        return self._vectors(validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64))

    def _holds_none(self, X: Any) -> bool:
        """Tell whether X is an empty column, for a classifier of texts, mails or dicts."""
        return not hasattr(self, "n_features_in_") and _is_column(X) and len(X) == 0

    def _check_columns(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise ValueError("X: this classifier has learnt texts, mails or dicts, and no matrix of numbers.")

    def _vectors(self, X: Any) -> Iterator[dict[str, Any]]:
        """Yield the rows of a matrix as bodies. Zeros of hashed columns are left out."""
        names = self._names()
        if issparse(X):
            if not X.has_canonical_format:
                X = X.copy()  # it may be the caller's
                X.sum_duplicates()
            always = {name: 0.0 for name in names if name in self._dense}
            for i in range(X.shape[0]):
                part = slice(X.indptr[i], X.indptr[i + 1])
                row = zip((names[j] for j in X.indices[part]), X.data[part].tolist())
                yield {"vector": {**always, **{n: v for n, v in row if v != 0 or n in self._dense}}}
        elif self._dense.issuperset(names):
            for row in X:
                yield {"vector": dict(zip(names, row.tolist()))}
        else:
            for row in X:
                yield {"vector": {n: v for n, v in zip(names, row.tolist()) if v != 0 or n in self._dense}}


@contextlib.contextmanager
def _unchanged_on_error(estimator: Classifier) -> Iterator[None]:
    """Give the estimator its attributes back if the block fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def _is_column(X: Any) -> bool:
    """Tell whether X has one dimension and a length."""
    return not isinstance(X, (str, bytes, Mapping)) and not issparse(X) and getattr(X, "ndim", 1) == 1 and hasattr(X, "__len__")


def _holds_bodies(X: Any) -> bool:
    """Tell whether X is a column of texts, mails or dicts."""
    if not _is_column(X):
        return False
    try:
        first = next(iter(X))
    except (StopIteration, TypeError):
        return False
    return isinstance(first, (str, bytes, Mapping))
