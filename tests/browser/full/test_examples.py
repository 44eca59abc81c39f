"""Examples, and where they lead."""


def press(reader, title):
    with reader.reading_anew():
        reader.page.locator("#examples button", has_text=title).click()


def test_who_brings_nothing_sees_a_telling_head_of_the_first_example(reader):
    reader.open()
    assert reader.page.input_value("#text").startswith("Doctor Mouse")
    assert reader.chosen_head == "Layer 1, head 2"
    assert "attends most to “Mouse” at 3 with weight 0.99" in reader.readout


def test_an_example_opens_the_view_the_head_and_the_token(reader):
    reader.open(text="Something else", view="experts", layer=0, head=0)
    press(reader, "A verb and its subject")
    assert reader.view.get_attribute("id") == "view-attention"
    assert reader.chosen_head == "Layer 3, head 5"
    assert reader.readout.startswith("“were” attends most to “children”")


def test_an_example_that_was_left_leads_back_when_it_is_pressed_again(reader):
    reader.open()
    press(reader, "An expert for punctuation")
    assert reader.view.get_attribute("id") == "view-experts"
    reader.choose_view("Positions")
    reader.page.locator("#examples button", has_text="An expert for punctuation").click()
    reader.wait_until_drawn()
    assert reader.view.get_attribute("id") == "view-experts"


def test_an_example_of_a_translator_opens_the_place(reader):
    reader.open(text="Hello.", model="translate")
    press(reader, "What “it” stands for")
    assert "where=encoder" in reader.fragment
    assert reader.readout.startswith("“it” attends most to “house”")


def test_a_link_without_a_text_keeps_what_it_says(reader):
    reader.open(view="positions", head=0)
    assert reader.view.get_attribute("id") == "view-positions"
    assert "head=0" in reader.fragment
