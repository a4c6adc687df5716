"""Random programs, and campaigns that compare one execution with another."""
