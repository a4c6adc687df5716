"""The buses: AXI4 to memory, AXI4-Lite from a driver, and arbitration."""
