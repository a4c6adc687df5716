"""How the command line is read: the help, and values of options."""
