"""The sleep of the tests in Python: only between two looks at a condition."""

import time

_LIMIT_S = 60


def wait_for(what, condition):
    """The first true value of the condition. Only a failing test waits until the limit."""
    end = time.monotonic() + _LIMIT_S
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {_LIMIT_S} s in vain for {what}")
        time.sleep(0.02)
    return value
