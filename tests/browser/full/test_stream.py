"""The residual stream: the logit lens, norms, what is written, what the layer norms see."""

import re

import numpy as np
import pytest

TEXT = "Once upon a time there was a little"
PAIR = {"model": "pairs", "text": "the cat sat on the mat"}


@pytest.fixture
def lens(ask):
    """What the API's logit lens reads in a text: the likeliest by layer and position."""

    def read(text=TEXT, **options):
        analyses = ask("trace", text=text, capture=[], analyses=["logit_lens"], **options)[
            "analyses"
        ]["logit_lens"]
        return analyses["texts"], np.array(analyses["probabilities"]["data"])

    return read


@pytest.fixture
def stream(ask):
    """What the API says of the residual stream, by name."""

    def read(text=TEXT, **options):
        found = ask("trace", text=text, capture=[], analyses=["residual_stream"], **options)
        found = found["analyses"]["residual_stream"]
        return {name: np.array(array["data"]) for name, array in found.items()}

    return read


def show(reader, title):
    reader.view.locator(".controls label", has_text=re.compile(f"^{title}$")).click()
    reader.wait_until_drawn()


def plain(text):
    """Text without the marks that keep a token's direction to itself."""
    return text.replace("\u2068", "").replace("\u2069", "")


def percent(share):
    return f"{100 * share:.1f} %"


def lens_cell(reader, layer, position, layers, count):
    """Where on the screen a cell of a lens of one line is; the tokens stand above the layers."""
    return reader.cell(layer + 1, position, layers + 1, count)


def test_the_lens_writes_the_likeliest_token_into_every_cell(reader, lens):
    reader.open(text=TEXT, view="stream")
    texts, probabilities = lens()
    layers, count, _ = probabilities.shape
    written = reader.view.locator(".plot").first.locator(".scatterlayer text").all_text_contents()
    tokens, cells = written[:count], written[count:]
    assert tokens[:4] == ["<s>", "Once", "upon", "a"]
    assert len(cells) == layers * count
    for position in range(count):
        for layer in range(layers):
            text = texts[layer][position][0]
            if re.fullmatch(r" ?[a-z]{1,6}|,", text):
                assert cells[position * layers + layer] == text.strip()
    reader.page.mouse.move(*lens_cell(reader, 2, 4, layers, count))
    assert reader.tip().endswith(percent(probabilities[2, 4, 0]))
    assert reader.readout.startswith("After “time”, layer 2 would expect “")


def test_a_cell_of_the_lens_opens_its_likeliest_tokens_and_the_link_keeps_it(reader, lens):
    reader.open(text=TEXT, view="stream")
    texts, probabilities = lens()
    layers, count, _ = probabilities.shape
    assert reader.view.locator("h2").count() == 2
    reader.page.mouse.click(*lens_cell(reader, 1, 4, layers, count))
    reader.wait_until_drawn()
    check_cell(reader, texts, probabilities)
    fragment = reader.fragment
    assert "stream_layer=1" in fragment
    assert "query=4" in fragment
    reader.page.reload()
    reader.wait_until_drawn()
    assert reader.fragment == fragment
    check_cell(reader, texts, probabilities)
    reader.page.go_back()
    reader.wait_until_drawn()
    assert reader.view.locator("h2").count() == 2


def check_cell(reader, texts, probabilities):
    """The bars of the token “time” after layer 1, and those of the last layer beside them."""
    headings = headings_of(reader)
    assert headings[1:] == [
        "After “time”, by layer 1",
        f"After “time”, by layer {len(texts) - 1}, the last: what the model predicts",
    ]
    for panel, layer in ((1, 1), (2, len(texts) - 1)):
        bars = reader.view.locator(".panel").nth(panel).locator(".bars .bartext")
        expected = [
            percent(p) + (" · came next" if text == " there" else "") if p >= 0.0005 else "<0.1 %"
            for p, text in zip(probabilities[layer, 4][:12], texts[layer][4], strict=False)
        ]
        assert bars.all_text_contents() == expected


def headings_of(reader):
    return [plain(heading) for heading in reader.view.locator("h2").all_text_contents()]


def test_the_lens_is_walked_by_keyboard_and_read_out(reader, lens):
    reader.open(text=TEXT, view="stream")
    _, probabilities = lens()
    layers, count, _ = probabilities.shape
    plot = reader.view.locator(".plot").first
    assert "likeliest token after each of 4 layers" in plot.get_attribute("aria-label")
    plot.focus()
    reader.page.keyboard.press("ArrowUp")
    reader.page.keyboard.press("ArrowLeft")
    said = percent(probabilities[layers - 2, count - 2, 0])
    assert f"After “a” at 7, layer {layers - 2} would expect" in reader.announced
    assert said in reader.announced
    reader.page.keyboard.press("Enter")
    reader.wait_until_drawn()
    assert f"stream_layer={layers - 2}" in reader.fragment
    assert f"query={count - 2}" in reader.fragment


def test_the_table_of_the_lens_holds_tokens_and_probabilities(reader, lens):
    reader.open(text=TEXT, view="stream")
    texts, probabilities = lens()
    table = reader.table()
    assert table[0][1:3] == ["0 <s>", "1 Once"]
    assert [row[0] for row in table[1:]] == [f"layer {layer}" for layer in range(len(texts))]
    assert table[4][5] == f"“{texts[3][4][0].replace(' ', '·')}” {percent(probabilities[3, 4, 0])}"


def test_a_long_text_is_set_in_lines_and_every_token_can_be_read(reader, lens):
    text = " ".join(["the little red hen ran to the barn and"] * 20)
    reader.open(text=text, view="stream")
    _, probabilities = lens(text)
    layers, count, _ = probabilities.shape
    assert count > 150
    ticks = reader.view.locator(".plot").first.locator(".ytick text").all_text_contents()
    lines = ticks.count("after layer")
    assert lines > 4
    assert len(ticks) == lines * (layers + 1)
    columns = -(-count // lines)
    column, line = 5, 3
    position = line * columns + column
    where = reader.cell(line * (layers + 1) + 1 + 2, column, lines * (layers + 1), columns)
    reader.page.mouse.move(*where)
    assert percent(probabilities[2, position, 0]) in reader.tip()
    reader.page.mouse.click(*where)
    reader.wait_until_drawn()
    assert f"query={position}" in reader.fragment
    assert reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_norms_are_those_of_the_api_in_map_and_line(reader, stream):
    reader.open(text=TEXT, view="stream")
    show(reader, "Norms")
    assert "stream_show=norms" in reader.fragment
    found = stream()
    table = reader.table()
    assert table[1][0] == "embedding"
    assert [row[0] for row in table[2:4]] == ["0 · attention", "0 · experts"]
    norms = [found["decoder.residual_norm.before"][0]]
    for layer in range(4):
        norms += [found[f"decoder.residual_norm.{place}"][layer] for place in ("middle", "after")]
    shown = np.array([[float(cell) for cell in row[1:]] for row in table[1:]])
    np.testing.assert_allclose(shown, np.array(norms), rtol=1e-3)
    reader.page.mouse.move(*reader.cell(8, 3, 9, len(norms[0])))
    assert reader.tip() == f"3 · experts, “a” at 3\n{float(f'{norms[8][3]:.4g}'):g}"
    line = reader.table(panel=1)
    assert [float(cell) for cell in line[1][1:]] == [float(row[-1]) for row in table[1:]]
    means = [float(cell) for cell in line[2][1:]]
    np.testing.assert_allclose(means, np.mean(norms, axis=1), rtol=1e-3)


def test_the_line_follows_the_token_that_is_chosen(reader, stream):
    reader.open(text=TEXT, view="stream", stream_show="norms")
    reader.page.locator(".chip").nth(2).click()
    reader.wait_until_drawn()
    assert headings_of(reader)[1] == "Norm of the stream at “upon”"
    plot = reader.view.locator(".plot").nth(1)
    plot.focus()
    reader.page.keyboard.press("ArrowRight")
    norm = stream()["decoder.residual_norm.middle"][0][2]
    assert reader.announced == (
        f"After the attention of layer 0 the stream has norm {float(f'{norm:.4g}'):g} at “upon”"
    )


def test_writes_are_coloured_by_whether_they_push_along_or_against(reader, stream):
    reader.open(text=TEXT, view="stream", stream_show="writes")
    cosines = stream()["decoder.cosine.self_attention"]
    layer, token = np.unravel_index(cosines.argmin(), cosines.shape)
    assert cosines[layer, token] < -0.2
    rows, columns = 8, cosines.shape[1]
    where = reader.cell(2 * layer, token, rows, columns, panel=1)
    red, _, blue = reader.colour(where[0] - 8, where[1] - 6)
    assert blue > red, "against the stream is blue"
    reader.page.mouse.move(*where)
    assert f"cosine −{abs(cosines[layer, token]):.3f}" in reader.readout
    assert "writes against the stream" in reader.readout


def test_layer_norms_show_what_enters_them(reader, stream):
    reader.open(text=TEXT, view="stream", stream_show="layer_norm")
    found = stream()
    assert "LayerNorm stands before every part" in reader.view.locator(".help").text_content()
    for panel, statistic in enumerate(("mean", "deviation")):
        table = reader.table(panel)
        assert table[-1][0] == "last norm"
        last = [float(cell.replace("−", "-")) for cell in table[-1][1:]]
        np.testing.assert_allclose(last, found[f"decoder.{statistic}.norm"], rtol=1e-3)


def test_a_translator_has_the_lens_of_its_decoder_and_the_norms_of_both(reader, stream):
    reader.open(**PAIR, target="le chat dort", view="stream")
    assert reader.view.locator(".where").is_hidden()
    assert "After “" in reader.readout
    show(reader, "Norms")
    table = reader.table()
    found = stream(PAIR["text"], model="pairs", target="le chat dort")
    assert [row[0] for row in table[1:5]] == [
        "embedding",
        "0 · attention",
        "0 · cross-attention",
        "0 · feed-forward",
    ]
    assert len(table[0]) - 1 == len(reader.target)
    reader.view.locator(".where label", has_text="Encoder").click()
    reader.wait_until_drawn()
    table = reader.table()
    assert len(table[0]) - 1 == found["encoder.residual_norm.before"].shape[1]
    assert float(table[1][1]) == pytest.approx(
        found["encoder.residual_norm.before"][0][0], rel=1e-3
    )


def test_a_model_that_fills_in_is_asked_what_stands_there(reader):
    reader.open(model="blanks", text="The cat [MASK] on the mat.", view="stream")
    assert "put at each place" in reader.view.locator(".help").text_content()
    assert reader.readout.startswith("At “[MASK]”, layer 1, the last, would expect “")
    assert "stands here" in reader.view.locator(".panel-help").first.text_content()


def test_only_what_is_looked_at_is_asked_for_and_once(reader):
    asked = reader.asks()
    reader.open(text=TEXT, view="stream")
    show(reader, "Norms")
    show(reader, "Writes")
    show(reader, "Logit lens")
    analyses = [body["analyses"] for body in asked if body["capture"] == []]
    assert analyses == [["logit_lens"], ["residual_stream"]]


def test_tags_in_the_text_are_text(reader):
    reader.open(text="<b>bold</b> &amp; </s> العربية 🙂", view="stream")
    assert reader.view.locator(".plot b, .plot a").count() == 0
    reader.page.set_viewport_size({"width": 390, "height": 800})
    for title in ("Norms", "Writes", "Layer norms"):
        show(reader, title)
        assert reader.view.locator(".panel-notice:visible").count() == 0
        assert reader.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
