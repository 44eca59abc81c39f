"""Documents are those that training reads, each with its file and line."""

import pytest

from headlight.lab.data import documents
from headlight.lab.data.documents import stream_documents
from headlight.model.corpus import CorpusError, read_documents

TEXT = """Once upon a time.
The fox ran.

The end.
<|endofbook|>
A second book.
<|endofbook|>It goes on here.\r
The last line"""


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.txt"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    return path


def test_the_documents_are_those_of_training_without_the_ends_of_lines_around_them(book):
    texts = [document.text for document in stream_documents([book])]
    assert texts == [text.strip("\n") for text in read_documents([book])]
    assert len(texts) == 3


def test_a_document_names_its_file_and_line(book, tmp_path):
    lines = tmp_path / "lines.jsonl"
    lines.write_text('\n{"text": "Première.\\r\\nZwei.", "page": 3}\n{"text": "b"}\n')
    read = list(stream_documents([book, lines]))
    places = [(book, 1), (book, 6), (book, 7), (lines, 2), (lines, 3)]
    assert [document.source for document in read] == [f"{path}:{line}" for path, line in places]
    assert read[3].to_dict() == {"page": 3, "text": "Première.\nZwei.", "source": f"{lines}:2"}


def test_passages_are_whole_paragraphs_that_make_up_the_document(tmp_path):
    path = tmp_path / "long.txt"
    paragraphs = [f"{number} " + "word " * 120 for number in range(9)]
    path.write_text("\n".join(paragraphs))
    passages = list(stream_documents([path], "passage"))
    assert "\n".join(document.text for document in passages) == path.read_text()
    assert all(len(document.text) >= documents.PASSAGE for document in passages[:-1])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", "is empty; it needs text"),
        ("a.txt", b"\n \n<|endofbook|>\n", "is empty; it needs text"),
        ("a.txt", b"fine\nbad \xff\n", "is not UTF-8: line 2 holds 0xff"),
        ("a.txt", b"fine\n\x89PNG\0\0", "is binary: line 2 holds a zero byte"),
        ("a.jsonl", b'{"text": "a"}\n{"text": \n', "line 2 is not JSON"),
        ("a.jsonl", b'{"text": "a"}\n{"title": "b"}\n', "line 2 has no member 'text'"),
        ("a.jsonl", b'{"text": "a"}\n["b"]\n', "line 2 is not a JSON object"),
        ("a.jsonl", b"", "is empty"),
    ],
)
def test_a_bad_file_is_named_with_its_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=message) as raised:
        list(stream_documents([path]))
    assert str(path) in str(raised.value)


def test_a_missing_file_and_an_empty_folder_are_errors(tmp_path):
    with pytest.raises(CorpusError, match=r"gone\.txt cannot be read: No such file"):
        list(stream_documents([tmp_path / "gone.txt"]))
    with pytest.raises(CorpusError, match=r"holds no \.txt file"):
        list(stream_documents([tmp_path]))
    with pytest.raises(CorpusError, match="no corpus"):
        list(stream_documents([]))
