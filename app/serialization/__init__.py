"""Serialization of answers: format, content negotiation, compression, entity tags, sending."""
