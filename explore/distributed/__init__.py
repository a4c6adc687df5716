"""Measurements on several processes and machines, by Dask."""
