"""From a request to an answer: validated, batched with others, computed, cached."""
