"""The quantization tool: a float model in, an int8 model for the accelerator out."""
