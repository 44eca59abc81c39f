"""A circuit of a sentence: an edge is cut by pointer and by keyboard."""

import pytest

TEXT, OTHER = "The dogs with the girl", "The dog with the girl"


@pytest.fixture
def circuit(reader):
    reader.open(text=TEXT, view="circuit", circuit_text=OTHER, circuit_edges=20)
    return reader


def words(reader):
    return reader.page.locator("#next .bar-number").all_text_contents()


def test_a_cut_edge_moves_the_next_word_and_is_joined_again(circuit):
    before = words(circuit)
    circuit.view.locator(".plot").first.focus()
    circuit.page.keyboard.press("Home")
    assert "reads" in circuit.announced
    circuit.page.keyboard.press("Enter")
    circuit.page.locator("#says", has_text=" cut, the model").wait_for()
    circuit.wait_until_drawn()
    assert words(circuit) != before
    assert "circuit_cut=" in circuit.page.url
    circuit.page.get_by_role("button", name="Put it back").click()
    circuit.wait_until_drawn()
    assert words(circuit) == before


def test_tokens_have_columns(circuit):
    circuit.view.locator("label", has_text="By token").click()
    circuit.wait_until_drawn()
    circuit.view.get_by_text("The edges at each token").wait_for()
    assert "“dogs”" in circuit.view.locator(".answer").text_content()
