"""Channels of tensors that are joined or cut, moved to where tiles begin."""
