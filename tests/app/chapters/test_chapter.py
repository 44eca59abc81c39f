"""A chapter's file: what it holds, and faults with the file and the line."""

import pytest

from headlight.chapters.chapter import MAX_BYTES, ChapterError, link_of, opened_by, read_chapter
from headlight.chapters.library import SHIPPED, Library, circle_in, read_file
from headlight.chapters.outcomes import Opens
from headlight.commands.chapter import TEMPLATE

HEAD = "---\ntitle: A title\n---\n\n"
STEP = """\
## A step

```step
opens: {model: tiny, text: the cat sat, layer: 0, head: 1}
question:
  asks: Which?
  by: token
  answer: {of: strongest_key, query: cat}
```

Some *text*.
"""


def read(text):
    return read_chapter(text, "a.md", "a")


def test_a_chapter_has_steps_with_text_view_and_question():
    chapter = read(HEAD + STEP + "\n## The end\n\nNo block here.\n")
    first, last = chapter.steps
    assert (chapter.title, first.title, first.text) == ("A title", "A step", "Some *text*.")
    assert first.html == "<p>Some <em>text</em>.</p>\n"
    assert first.link == "/#text=the+cat+sat&model=tiny&view=attention&layer=0&head=1"
    assert (first.question.answer.of, first.question.answer.query) == ("strongest_key", "cat")
    assert (last.title, last.question, last.line) == ("The end", None, 17)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("## A step\n", 1, "front matter"),
        ("---\ntitle: A\n---\n", 3, "no step"),
        ("---\ntitel: A\n---\n" + STEP, 2, "titel"),
        ("---\ntitle: [\n---\n" + STEP, 2, "YAML"),
        (HEAD + "Words.\n\n" + STEP, 4, "before the first step"),
        (HEAD + STEP.replace("layer: 0", "layer: -1"), 8, "layer"),
        (HEAD + STEP.replace("by: token", "by: luck"), 11, "question.by"),
        (HEAD + STEP.replace("of: strongest_key", "of: magic"), 12, "question.answer"),
        (HEAD + STEP.replace("query: cat", "quary: cat"), 12, "quary"),
        (HEAD + STEP.replace("question:", "highlights: [{}]\nquestion:"), 9, "a query, a key"),
        (HEAD + STEP.replace("Some", "<script>alert(1)</script>"), 15, "HTML"),
        (HEAD + STEP.replace("Some", "one <b onclick=x>two</b>"), 15, "HTML"),
        (HEAD + STEP.replace("Some", "![a](http://b.example/c.png)"), 15, "pictures"),
        (HEAD + STEP.replace("Some", "word " * 61), 5, "62 words"),
        (HEAD + STEP + "\n```step\nmarks: two\n```\n", 17, "second block"),
        (HEAD + STEP.replace("opens:", "opens: &a {}\nmore: *a\nx:"), 8, "an alias"),
        ("x" * (MAX_BYTES + 1), 1, "larger"),
        ("---\ntitle: a\ntitle: b\n---\n" + STEP, 3, "given twice"),
        ("---\ntitle: !!int 1:60\n---\n" + STEP, 2, "tag"),
        ("---\ntitle: a\norder: .nan\n---\n" + STEP, 3, "order: '.nan' is not a number"),
        ("---\ntitle: a\norder: 1" + ":59" * 400 + "\n---\n" + STEP, 3, "is not a number"),
        (HEAD + "## A\n\n" * 61, 125, "at most 60 steps"),
        (HEAD + STEP + "[" * 2_001, 5, "characters"),
        (HEAD + STEP.replace("opens: {", 'opens: "#a=' + "[" * 1_900 + '"\nx: {'), 8, "too deeply"),
    ],
)
def test_a_fault_names_the_file_and_the_line(text, line, said):
    with pytest.raises(ChapterError) as error:
        read(text)
    assert str(error.value).startswith(f"a.md, line {line}: ")
    assert said in str(error.value)


def test_faults_of_every_step_are_told_at_once():
    block = "```step\nlayers: 1\n```\n"
    with pytest.raises(ChapterError) as told:
        read_chapter(
            f"---\nname: A\n---\n## A\n\n{block}\n## B\n\n<b>\n\n## C\n\n{block}", "a.md", "a"
        )
    lines = [line.partition(": ")[0] for line in str(told.value).split("\n")]
    assert lines == [f"a.md, line {at}" for at in (2, 2, 7, 12, 17)]


def test_twenty_faults_are_told_and_the_others_counted():
    keys = "".join(f"k{number}: 1\n" for number in range(5_000))
    with pytest.raises(ChapterError) as error:
        read(f"---\ntitle: a\n{keys}---\n{STEP}")
    told = str(error.value).splitlines()
    assert (len(told), told[-1]) == (21, "a.md, line 22: and 4,980 more faults")


def test_a_long_name_is_cut_in_its_fault():
    with pytest.raises(ChapterError) as error:
        read(f"---\ntitle: a\n{'k' * 900}: 1\n---\n{STEP}")
    assert len(str(error.value)) < 400


def test_numbers_that_yaml_1_1_writes_to_the_base_60_are_texts():
    assert read(HEAD.replace("A title", "1:60:60") + STEP).title == "1:60:60"


def test_words_such_as_off_and_no_are_texts():
    of_no = "opens: {experiment: scaling}\nquestion:\n  asks: How many?\n  by: number\n"
    of_no += "  answer: {of: experiment, array: variance, at: {scaled: no}}"
    chapter = read(HEAD + f"## A\n\n```step\n{of_no}\n```\n")
    assert chapter.steps[0].question.answer.at == {"scaled": "no"}


def test_a_link_of_the_address_bar_opens_what_its_parts_open():
    link = "http://127.0.0.1:8000/#text=the+cat&layer=1&weight=0.5&why_temperature=2&chapter=x&chapter_step=3"
    opens = Opens(**opened_by(link))
    assert (opens.text, opens.layer, opens.weight) == ("the cat", 1, 0.5)
    assert opens.more == {"why_temperature": 2}
    assert Opens(**opened_by(link_of(opens))) == opens


def test_a_link_to_an_experiment_keeps_its_knobs():
    opens = Opens(**opened_by("/experiments#experiment=scaling&scores=3,2,1&width=64"))
    assert (opens.experiment, opens.knobs) == ("scaling", {"scores": [3, 2, 1], "width": 64})
    assert link_of(opens) == "/experiments#experiment=scaling&scores=3%2C2%2C1&width=64"


def test_a_link_without_a_fragment_is_a_fault():
    with pytest.raises(ChapterError, match="address bar"):
        read(HEAD + "## A\n\n```step\nopens: http://127.0.0.1:8000/\n```\n")


def test_what_a_new_chapter_begins_with_can_be_read():
    assert read(TEMPLATE.read_text("utf-8")).n_questions == 1


def test_shipped_chapters_have_what_a_chapter_needs():
    chapters, faults = Library().chapters()
    assert faults == {}
    assert {"lookup", "why-root-d", "predicting", "copying"} <= {each.id for each in chapters}
    for chapter in chapters:
        assert 8 <= len(chapter.steps) <= 12, chapter.id
        assert chapter.n_questions >= 3, chapter.id
        assert chapter.sources, chapter.id
        assert chapter.steps[-1].title == "What it does not show", chapter.id
        assert circle_in(chapters, chapter) is None


def test_a_folder_adds_chapters_and_tells_of_those_that_cannot_be_read(tmp_path):
    (tmp_path / "mine.md").write_text(HEAD + STEP)
    (tmp_path / "bad.md").write_text("nothing")
    (tmp_path / "lookup.md").write_text(HEAD + STEP)
    (tmp_path / "Large Name.md").write_text(HEAD + STEP)
    (tmp_path / "binary.md").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "huge.md").write_bytes(b"a" * 10_000_000)
    chapters, faults = Library(tmp_path).chapters()
    assert "mine" in {each.id for each in chapters}
    assert set(faults) == {"bad.md", "lookup.md", "Large Name.md", "binary.md", "huge.md"}
    (tmp_path / "bad.md").write_text(HEAD + STEP + "\nMore text than before.\n")
    assert "bad.md" not in Library(tmp_path).chapters()[1]


def test_a_circle_of_chapters_is_seen(tmp_path):
    for name, following in (("one", "two"), ("two", "one"), ("three", "one")):
        text = HEAD.replace("title: A title", f"title: A title\nnext: {following}") + STEP
        (tmp_path / f"{name}.md").write_text(text)
    one, three, two = (read_file(path) for path in sorted(tmp_path.glob("*.md")))
    assert circle_in([one, two, three], three) == ["one", "two", "one"]
    assert SHIPPED.is_dir()
