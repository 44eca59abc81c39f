"""Analyses: pure functions from a `Trace` to named arrays, one quantity per file.

    layers                    the layers and attentions that a trace holds
    next_token                the most likely next tokens after each token
    logit_lens                the next token read from the residual stream of each layer
    residual_stream           norms of the stream and of what is written to it
    answers                   the answer that a model marks in a text, and what moves a score
    attention_by_distance     the mean weight of each head by distance
    head_labels               scores of each head's behaviour on a text
    rollout                   how much of each token comes from each input token
    alignment                 words of a translation and of its source
    routing                   load, entropy and agreement of expert layers
    head_outputs              what each head adds to the residual stream
    logit_attribution         the share of each part in the difference of two logits
    stream_parts              the parts of a stream, through a matrix that reads it
    score_attribution         the parts that make a query look at a key
    induction                 an induction head, and the earlier head that feeds it
    attention_thread          from a prediction back, why each head looked where it did
    reward                    the reward of a text, and the share of each token
    saliency                  the share of each token of the text in a logit difference
    edited_passes             passes over the text with one edit each
    reasons                   the parts that decide a prediction, each taken away
    patching                  the share of two texts' difference that each activation carries
    sentence_vectors          the vector of a text, the similarity of two, and what moves them
    head_circuits             the tokens that a head looks for, and those that it writes
    quantization_sensitivity  what each part loses by fewer bits

The analyses that a request may ask for are in `headlight.analyses`.
"""
