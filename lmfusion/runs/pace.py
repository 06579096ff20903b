"""How long a command will still take, from how fast it goes now, not from its average since the start."""

from __future__ import annotations

from collections import deque

SPAN = 30.0
"""Seconds of work that a pace is measured over."""
LEAST = 3
"""Intervals that it is measured over at least, for one alone may be an exception."""
BETWEEN_BATCHES = 0.05
"""Seconds without an item by which a new batch is known: those of one are printed at once."""


class Pace:
    """Seconds per unit of work over the most recent intervals."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, float]] = deque()

    def add(self, units: float, seconds: float) -> None:
        """Take in an interval's work and time, and forget those that are older than needed."""
        if units <= 0:
            return
        self._recent.append((units, seconds))
        total = sum(each for _, each in self._recent)
        while len(self._recent) > LEAST and total - self._recent[0][1] >= SPAN:
            total -= self._recent.popleft()[1]

    @property
    def seconds_each(self) -> float | None:
        """Return seconds per unit; None before any interval."""
        if not self._recent:
            return None
        return sum(seconds for _, seconds in self._recent) / sum(units for units, _ in self._recent)


class TrainingEstimate:
    """Time left of a training: updates at their recent pace, and validations at what the last one took."""

    def __init__(self, updates: int) -> None:
        self._updates = updates
        self._pace = Pace()
        self._after_validations = Pace()
        """Of updates that follow a validation, and so the writing of checkpoints; used while there are no others."""
        self._last: tuple[int, float] | None = None
        """Updates done at the last line that was seen, and when."""
        self._has_validated = False
        """Whether that line was a validation's."""
        self._validated_at: int | None = None
        self._every: int | None = None
        """Updates from one validation to the next."""
        self._validation = 0.0
        """Seconds of the last one, before its checkpoints are written."""
        self._writing = 0.0
        """Seconds of those."""

    def saw_updates(self, update: int, now: float) -> None:
        """Take in that so many updates are done at this time, in seconds of any clock."""
        last, self._last = self._last, (update, now)
        validated, self._has_validated = self._has_validated, False
        if last is None or update <= last[0]:
            return
        units, seconds = update - last[0], now - last[1]
        if not validated:
            self._pace.add(units, seconds)
            return
        self._after_validations.add(units, seconds)
        if (each := self._pace.seconds_each) is not None:
            self._writing = max(0.0, seconds - each * units)

    def saw_validation(self, update: int, now: float) -> None:
        """Take in that a validation after so many updates is done at this time."""
        if self._last is not None:
            self._validation = max(0.0, now - self._last[1] - (self._seconds_each or 0.0) * (update - self._last[0]))
        if self._validated_at is not None and update > self._validated_at:
            self._every = update - self._validated_at
        self._validated_at, self._last, self._has_validated = update, (update, now), True

    def seconds_left(self, update: int) -> float | None:
        """Return seconds until the last update and the validation after it; None as long as there is no pace."""
        each = self._seconds_each
        if each is None:
            return None
        validations = self._validations_left(update)
        return each * max(0, self._updates - update) + (self._validation + self._writing) * validations

    @property
    def _seconds_each(self) -> float | None:
        each = self._pace.seconds_each
        return self._after_validations.seconds_each if each is None else each

    def _validations_left(self, update: int) -> int:
        """Return how many are to come; of a training that has seen one since it was started, as many updates apart."""
        every = self._every or self._validated_at
        if not every or self._validated_at is None or update >= self._updates:
            return 0
        return -(-(self._updates - self._validated_at) // every)


class BatchEstimate:
    """Time left of work whose items come a batch at a time."""

    def __init__(self, items: int) -> None:
        self._items = items
        self._pace = Pace()
        self._batch: tuple[int, float] | None = None
        """Items done before the batch whose items are coming now, and when its first one came."""
        self._last_at: float | None = None

    def saw_item(self, done: int, now: float) -> None:
        """Take in that an item, the ``done``-th, came at this time, in seconds of any clock."""
        before, self._last_at = self._last_at, now
        if before is not None and now - before < BETWEEN_BATCHES:
            return
        if self._batch is not None:
            self._pace.add(done - 1 - self._batch[0], now - self._batch[1])
        self._batch = (done - 1, now)

    def seconds_left(self, done: int) -> float | None:
        """Return seconds until the last item; None before the second batch."""
        each = self._pace.seconds_each
        return None if each is None else each * max(0, self._items - done)
