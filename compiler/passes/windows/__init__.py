"""What the accelerator has no instruction for, as windows: convolutions, pools and sums."""
