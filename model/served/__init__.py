"""Models that can be traced, generated from and analysed."""
