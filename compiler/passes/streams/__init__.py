"""Passes for networks that get their input frame by frame."""
