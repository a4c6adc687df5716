"""What every part agrees on: configuration, instructions, arithmetic and the program image."""
