"""Boards as data: their files, what the files may say, and what fits on a part."""
