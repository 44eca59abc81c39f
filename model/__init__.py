"""A transformer written to be read: its parts, its hook points and everything it needs.

The parts lie in `attention`, `embedding`, `positions`, `norms`, `feed_forward` and `moe`; `layers`
and `transformer` join them. `hooks` names every tensor, `interventions` changes a pass (a head
switched off), `tracing` runs one. `checkpoint` reads and writes a model; `config` has its sizes.
"""
