"""Rules of ONNX operators on images."""
