"""How many random examples a test tries whose examples take long."""

from hypothesis import settings


def examples(count):
    """Settings of a test: so many, the same every run; in `make soak` ten times as many, others
    each time. Those that say nothing try what the profile says (`conftest.py`)."""
    return settings(max_examples=count if settings.default.derandomize else 10 * count)
