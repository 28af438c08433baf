"""Whether what a cause asks of a signal holds for one series of it."""

from __future__ import annotations

from bot.cause import Movement, SignalTest
from bot.diagnosis.observation import Observation


def holds(test: SignalTest, item: Observation) -> bool | None:
    """Whether a test holds for one observation, None when that cannot be told."""
    if test.movement is Movement.STOPPED:
        return item.has_stopped()
    if test.movement is Movement.RISING:
        return _rises(test, item)
    if test.movement in (Movement.ABOVE, Movement.BELOW):
        if item.during is None or test.value is None:
            return None
        above = item.during.middle >= test.value
        return above if test.movement is Movement.ABOVE else not above
    moved = item.moved(ratio=test.ratio, delta=test.delta)
    if moved is None:
        return None
    if test.usual and moved is not Movement.FLAT:
        usual = item.is_usual()
        if usual is None:
            # Without other days nobody can say whether this hour is always like that.
            return None
        if usual:
            moved = Movement.FLAT
    calm = test.movement in (Movement.NOT_UP, Movement.NOT_DOWN)
    if (
        moved is Movement.FLAT
        and item.is_lost_in_noise(test.ratio, test.delta)
        and (calm or _points(item) is test.movement)
    ):
        # It stands elsewhere than before, but the time before was too restless to call that a move or calm.
        return None
    match test.movement:
        case Movement.UP | Movement.DOWN | Movement.FLAT:
            return moved is test.movement
        case Movement.CHANGED:
            return moved is not Movement.FLAT
        case Movement.NOT_UP:
            return moved is not Movement.UP
        case Movement.NOT_DOWN:
            return moved is not Movement.DOWN


def _points(item: Observation) -> Movement:
    return Movement.UP if item.delta > 0 else Movement.DOWN


def _rises(test: SignalTest, item: Observation) -> bool | None:
    """Grows over hours and has not stopped growing: a plateau after warm-up is no leak."""
    if item.growth is None or item.before is None:
        return None
    whole, recent = item.growth
    least = test.delta if test.delta is not None else item.signal.floor
    return whole >= least and recent >= 0.15 * whole
