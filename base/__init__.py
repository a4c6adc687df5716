"""What every part may use and none owns. Imports nothing of ours."""
