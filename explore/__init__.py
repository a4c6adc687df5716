"""Records of measurements, data sets, cost models and tuning. Only `cli` imports it."""
