"""A classifier that learns one event after another, by River's conventions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Optional

from .events import Features, body
from .model import Model

if TYPE_CHECKING:
    _Base: Any = object
else:
    try:
        from river.base import Classifier as _Base
    except ImportError:
        _Base = object


class StreamClassifier(_Base):
    """A binary classifier by River's conventions. It works without River too.

    ``x`` is a text (str), a mail (bytes) or a dict of features. Features that are numbers are
    hashed by name; those listed in ``dense`` enter the model as they are, and every ``x``
    must have them. A string ``v`` of a feature ``name`` becomes the feature ``name=v``.
    None and NaN are left out.

    Parameters
    ----------
    positive
        The label that counts as spam. The other one may be anything.
    dense
        Names of numbers that every ``x`` has. Hashed names may come and go.
    config
        More keys of the model's configuration (``hamlet eval --keys``).
    binary
        Path of the program hamlet.

    Examples
    --------
    >>> from hamlet import StreamClassifier
    >>> filter = StreamClassifier(positive="spam")
    >>> filter.learn_one("You won a prize", "spam")
    >>> filter.learn_one("See you at lunch", "ham")
    >>> sorted(filter.predict_proba_one("a prize"))
    ['ham', 'spam']
    """

    def __init__(
        self, positive: Hashable = True, dense: Optional[Iterable[str]] = None,
        config: Optional[Mapping[str, Any]] = None, binary: Optional[str] = None,
    ) -> None:
        self.positive = positive
        self.dense = dense
        self.config = config
        self.binary = binary
        # None until the other label is known. With True it is False.
        self._negative: Optional[Hashable] = False if isinstance(positive, bool) and positive else None
        self._model: Optional[Model] = None  # None until x is learnt or asked about

    @property
    def _multiclass(self) -> bool:
        return False

    @property
    def model(self) -> Model:
        """The model, for :meth:`Model.info`, :meth:`Model.save` and withdrawals."""
        if self._model is None:
            config = dict(self.config or {})
            if self.dense is not None:
                config["dense"] = sorted(self.dense)
            self._model = Model(config, binary=self.binary)
        return self._model

    def learn_one(self, x: Features, y: Hashable, source: Optional[str] = None) -> None:
        """Learn that x has the label y. ``source`` names who said so."""
        if y is None:
            raise ValueError("y: a label is wanted, not None")
        event = {**body(x), "label": "spam"}
        if y != self.positive:
            if self._negative is None:
                self._negative = y
            if y != self._negative:
                raise ValueError(
                    f"y: {y!r} is a third label beside {self.positive!r} and {self._negative!r}; "
                    "`positive` names the one that counts as spam"
                )
            event["label"] = "ham"
        if source is not None:
            event["source"] = source
        self.model.learn([event])

    def predict_proba_one(self, x: Features) -> dict[Hashable, float]:
        """Return the probability of each label, {} if only one label is known."""
        if self._negative is None:
            return {}
        p = self.model.score([body(x)])[0]["p"]
        return {self._negative: 1 - p, self.positive: p}

    def predict_one(self, x: Features) -> Optional[Hashable]:
        """Return the more probable label, None if only one label is known."""
        if self._negative is None:
            return None
        return self.positive if self.model.score([body(x)])[0]["log_odds"] > 0 else self._negative

    def predict_interval_one(self, x: Features, level: float = 0.9) -> tuple[float, float]:
        """Return an interval of the probability of ``positive``."""
        lo, hi = self.model.score([body(x)], level)[0]["interval"]
        return lo, hi

    def explain_one(self, x: Features, words: int = 5) -> dict[str, Any]:
        """Return p, interval, reasons and words: see :meth:`Model.explain`."""
        return self.model.explain([body(x)], words=words)[0]
