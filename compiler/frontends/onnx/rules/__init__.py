"""How each kind of ONNX operator becomes operations of a graph."""
