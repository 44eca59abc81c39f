"""The inference engine: a bounded queue, one worker thread, and single flight."""
