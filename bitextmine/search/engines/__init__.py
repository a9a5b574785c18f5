"""What multiplies and compares: compiled C, torch, Triton."""
