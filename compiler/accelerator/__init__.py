"""The accelerator's back end: from loop nests to instruction streams."""
