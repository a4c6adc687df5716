"""Schedules of the layers of a program that suit each other."""
