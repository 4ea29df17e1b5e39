"""What happens while a program runs: drivers, devices, launches."""
