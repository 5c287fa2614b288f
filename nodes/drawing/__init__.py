"""What the analysis nodes draw, with Pillow alone. Knows numbers, words and pictures; no decoder, no host."""
