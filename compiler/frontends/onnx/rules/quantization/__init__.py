"""Rules of quantized ONNX operators."""
