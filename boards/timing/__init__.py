"""Static timing of the accelerator: synthesis, place and route, critical paths in our sources."""
