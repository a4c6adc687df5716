"""The report: one HTML file with everything that is known about one or more runs."""
