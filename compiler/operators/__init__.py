"""Operators: expressions, and templates of schedules with knobs."""
