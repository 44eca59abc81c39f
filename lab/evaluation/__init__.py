"""The figures on the model cards: metrics of trained models on text they never trained on."""
