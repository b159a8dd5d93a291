"""What every room may use of the machine: compiling, and what comes with it."""
