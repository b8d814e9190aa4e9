"""From equations to verified bounds, written once; the CPU as one of the places where it runs."""
