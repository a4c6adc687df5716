"""Layers linked into one stream: memory plan, relocation, tensors that stay on the chip."""
