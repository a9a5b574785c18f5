"""Mine sentence pairs: margins, retrieval, thresholds, rescoring."""
