"""What makes a quantized network more exact: each changes weights, biases or what stays float."""
