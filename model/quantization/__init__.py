"""Weights of few bits: rounding, GPTQ, and how they are stored."""
