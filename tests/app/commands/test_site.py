"""`headlight site`: what it says of options that are wrong."""

import pytest


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\n \n", "has no text; write one on each line"),
        (b"caf\xe9", "is not UTF-8 (byte 3)"),
        (b"x" * 1_000_001, "has 1,000,001 bytes, more than the 1,000,000 allowed"),
        (b"a cat\nnothing\ta cat", "line 2: there is no model 'nothing'"),
        (b"a\n" * 501, "has 501 texts, more than the 500 allowed"),
    ],
)
def test_texts_that_cannot_be_read_are_told_and_nothing_is_written(
    headlight, tmp_path, content, said
):
    path = tmp_path / "texts.txt"
    path.write_bytes(content)
    answer = headlight("site", str(tmp_path / "site"), "--texts", str(path))
    assert answer.exit_code == 2
    assert said in " ".join(answer.stderr.split())
    assert not (tmp_path / "site").exists()


def test_a_server_is_an_address(headlight, tmp_path):
    answer = headlight("site", str(tmp_path / "site"), "--server", "javascript:alert(1)")
    assert answer.exit_code == 2
    assert "is no address; write it as https://example.org" in " ".join(answer.stderr.split())
