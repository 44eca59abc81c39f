"""The quality of a text: its `features`, and a `classifier` that was trained on them."""
