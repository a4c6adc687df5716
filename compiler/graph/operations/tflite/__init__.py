"""Operations to the bit as TFLite's reference kernels compute them."""
