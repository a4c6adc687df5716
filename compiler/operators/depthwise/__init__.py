"""Depthwise convolutions, alone and fused with their neighbours."""
