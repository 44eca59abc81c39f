"""From a request for a trace to an answer: ordered, computed together with others, kept."""
