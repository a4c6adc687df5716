"""Known networks as quantized ONNX models with seeded weights: benchmarks without downloads."""
