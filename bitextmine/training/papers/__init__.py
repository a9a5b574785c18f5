"""Two papers' objectives and stages, which no shipped encoder is trained by; train/papers.md compares them."""
