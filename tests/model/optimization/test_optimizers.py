"""The optimizers of a model."""

from headlight.model.optimization.optimizers import make_optimizers


def test_every_parameter_has_one_optimizer_and_matrices_in_layers_have_muon(make_model):
    model = make_model()
    names = {parameter: name for name, parameter in model.named_parameters()}
    muon, adam = (
        [names[parameter] for group in optimizer.param_groups for parameter in group["params"]]
        for optimizer in make_optimizers(model, learning_rate=1.0)
    )
    assert sorted(muon + adam) == sorted(names.values())
    assert "decoder.layers.0.self_attention.query_projection.weight" in muon
    assert "decoder.layers.1.experts.experts.3.up_projection.weight" in muon
    assert "decoder.layers.1.experts.router.weight" in adam
    assert "decoder.embedding.vectors.weight" in adam
    assert not any("norm" in name or "bias" in name for name in muon)
