"""Build an atlas: read a corpus in shards, in this process or with Ray, and join what they give."""
