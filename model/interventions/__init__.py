"""Interventions in a forward pass: each kind of edit is a file.

    intervention     what an intervention is, and the places of a model on which one acts
    intervene        apply interventions to a pass, and to the sites of a pass
    head_ablation    the context of heads is 0
    expert_ablation  no token is routed to experts
    no_scaling       the products of queries and keys are not divided by √d_head
    temperature      the scores are divided by a temperature
    site_edit        the tensor of one site is set, added to, scaled or replaced by a mean
    knock_out        a query does not see a key
    corpus_edit      a site is set to a mean or a draw of a corpus

Rounded weights are `headlight.model.quantization.affine.Quantization`, cut edges
`headlight.model.circuits.cut.Cut`. A kind subclasses
`Intervention` and overrides what applies to it; no other file asks of which kind one is.
"""
