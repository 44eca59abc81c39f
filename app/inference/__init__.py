"""The parts of the engine: jobs in a queue, the thread that takes them, and who keeps it alive."""
