"""The menu of models: every kind of them, and the damaged ones by name."""

import pytest

TEXT = "a little light"


def test_the_menu_offers_every_model_by_kind_and_names_the_damaged(reader):
    reader.open(text=TEXT)
    menu = reader.page.locator("#model")
    groups = menu.locator("optgroup").evaluate_all(
        "(groups) => groups.map((g) => [g.label, [...g.children].map((o) => o.textContent)])"
    )
    assert [label.split(":")[0] for label, _ in groups] == [
        "Decoders",
        "Encoders",
        "Encoder–decoders",
    ]
    offered = {label.split(":")[0]: titles for label, titles in groups}
    assert "Blanks" in offered["Encoders"]
    assert {"Plain", "Rotary", "Alibi", "None"} < set(offered["Decoders"])
    assert "Pairs" in offered["Encoder–decoders"]
    damaged = menu.locator("option[value=damaged]")
    assert damaged.text_content() == "damaged (damaged)"
    assert damaged.is_disabled()
    assert "config.json" in damaged.get_attribute("title")


def test_another_model_keeps_the_text_and_brings_its_own_examples_and_card(reader):
    reader.open(text=TEXT, layer=3, head=5)
    for model, kind, example in [
        ("blanks", "encoder, 2 layers of 2 heads", "A blank"),
        ("pairs", "encoder–decoder, 2 + 2 layers of 2 heads", "A cat"),
        ("plain", "decoder, 2 layers of 2 heads", "A cat"),
    ]:
        with reader.reading_anew():
            reader.page.select_option("#model", model)
        assert reader.page.input_value("#text") == TEXT
        assert kind in reader.page.locator("#card").text_content()
        assert reader.page.locator("#examples button").first.text_content() == example
        assert f"model={model}" in reader.fragment
    reader.page.reload()
    reader.wait_until_drawn()
    assert reader.page.locator("#model").input_value() == "plain"


def test_a_link_to_a_damaged_model_says_that_it_is_damaged_and_why(reader):
    reader.open(model="damaged", text=TEXT)
    said = reader.page.locator("#notice").text_content()
    assert "The model “damaged” is damaged: " in said
    assert "config.json" in said
    assert "Choose another model." in said
    with reader.reading_anew():
        reader.page.select_option("#model", "plain")
    assert not reader.page.locator("#notice").is_visible()


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("rotary", "turns each query and key by angles"),
        ("alibi", "in proportion to the distance"),
        ("none", "this model is not told"),
    ],
)
def test_a_model_that_adds_no_encoding_says_what_it_does_instead(reader, model, said):
    reader.open(model=model, text=TEXT, view="positions")
    assert said in reader.view.locator(".help").text_content()
    notices = reader.view.locator(".panel-notice:visible").all_text_contents()
    if model == "none":
        assert "only the mask" in notices[0]
        assert not reader.view.locator(".plot").is_visible()
    else:
        assert notices == []
        assert reader.view.locator(".nsewdrag").count() > 0


def test_the_bias_of_alibi_is_what_the_model_added(reader, ask):
    reader.open(model="alibi", text=TEXT, view="positions", layer=1, head=1)
    site = "decoder.layers.0.self_attention.bias"
    bias = ask("trace", model="alibi", text=TEXT, capture=[site])["tensors"][site]["data"][1]
    table = reader.table()
    shown = [float(cell.replace("−", "-").replace(">", "")) for cell in table[4][1:5]]
    assert shown == pytest.approx(bias[3][:4], abs=1e-3)
    assert set(table[2][3:]) == {""}, "what comes later is hidden"


def test_learned_positions_are_shown_like_sinusoidal_ones(reader, ask):
    reader.open(model="blanks", text=TEXT, view="positions")
    site = "encoder.embedding.positional"
    told = ask("trace", model="blanks", text=TEXT, capture=[site])["tensors"][site]["data"]
    reader.page.mouse.move(*reader.cell(2, 3, len(told), len(told[0])))
    assert reader.readout.startswith(f"Position 2, “{reader.chips[2].strip('·')}”: ")
    assert reader.tip().split("\n")[1].replace("−", "-") == f"{told[2][3]:.4f}"
