"""Twins of FETCH and the command queues."""
