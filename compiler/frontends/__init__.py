"""Model files read into graphs: TFLite and ONNX."""
