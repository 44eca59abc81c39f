"""Links: kept in one file for all workers and restarts, within bounds, until they expire."""

import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from headlight.problems import Problem
from headlight.serving.links import DAY, FILE, Links
from headlight.settings import Settings


class Clock:
    def __init__(self):
        self.now = 1_800_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def links_with(tmp_path, clock):
    """Return what makes a worker's links, all of one folder."""
    return lambda **changed: Links(Settings(links_dir=tmp_path / "links", **changed), clock)


@pytest.fixture
def links(links_with):
    return links_with()


def kind_of(links, link_id):
    with pytest.raises(Problem) as caught:
        links.state(link_id)
    assert caught.value.status_code in (404, 503)
    return caught.value.kind


def texts_in(folder):
    return b"".join(path.read_bytes() for path in folder.glob(f"{FILE}*"))


def test_every_worker_and_a_restarted_server_read_a_link(links, links_with):
    link_id, _ = links.keep("text=the+cat")
    assert links_with().state(link_id) == links.state(link_id) == "text=the+cat"


def test_equal_states_have_unlike_ids_of_128_bits(links):
    ids = {links.keep("text=a")[0] for _ in range(20)}
    assert len(ids) == 20
    assert {len(link_id) for link_id in ids} == {22}, "6 bits each, and 2 of the last"
    assert len({link_id[:2] for link_id in ids}) > 10, "nothing of an id is the same"


def test_a_link_is_kept_until_it_expires(links_with, clock):
    links = links_with(link_days=2)
    link_id, expires = links.keep("text=a")
    assert expires.timestamp() == clock.now + 2 * DAY
    clock.now = expires.timestamp() - 1
    assert links.state(link_id) == "text=a"
    clock.now = expires.timestamp()
    assert kind_of(links, link_id) == "unknown-link"


def test_nothing_of_an_expired_link_is_left_in_the_file_after_the_next(links, clock, tmp_path):
    links.keep("text=" + "forgotten+" * 3_000)
    assert b"forgotten" in texts_in(tmp_path / "links")
    clock.now += 31 * DAY
    links.keep("text=new")
    assert b"forgotten" not in texts_in(tmp_path / "links")


def test_the_oldest_link_is_dropped_for_one_more(links_with):
    links = links_with(max_links=2)
    first, second, third = (links.keep(f"text={name}")[0] for name in "abc")
    assert kind_of(links, first) == "unknown-link"
    assert (links.state(second), links.state(third)) == ("text=b", "text=c")


def test_the_oldest_links_make_room_for_the_bytes_of_a_new_one(links_with):
    links = links_with(links_bytes=10)
    first, second = links.keep("a" * 4)[0], links.keep("b" * 6)[0]
    assert links.state(first) == "a" * 4
    third = links.keep("c")[0]
    assert kind_of(links, first) == "unknown-link"
    assert (links.state(second), links.state(third)) == ("b" * 6, "c")
    assert links.state(links.keep("d" * 11)[0]) == "d" * 11, "the new one is always kept"
    assert kind_of(links, third) == "unknown-link"


def test_the_file_stays_small_however_many_links_come(links_with, tmp_path):
    links = links_with(links_bytes=50_000)
    for _ in range(40):
        links.keep("a" * 10_000)
    assert (tmp_path / "links" / FILE).stat().st_size < 150_000


def test_workers_write_at_the_same_time_from_the_first_link_on(links_with):
    def keep(name):
        return links_with().keep(f"text={name}")[0]

    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(keep, range(40)))
    assert [links_with().state(link_id) for link_id in ids] == [f"text={n}" for n in range(40)]


def test_others_on_the_machine_do_not_read_the_links(links, tmp_path):
    links.keep("text=a")
    folder = tmp_path / "links"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / FILE)} == {0o700, 0o600}


def test_links_can_be_off(links, links_with):
    link_id, _ = links.keep("text=a")
    off = links_with(link_days=0)
    assert kind_of(off, link_id) == "links-off"
    with pytest.raises(Problem) as caught:
        off.keep("text=a")
    assert (caught.value.status_code, caught.value.kind) == (404, "links-off")


def test_reading_makes_no_file(links, tmp_path):
    assert kind_of(links, "a" * 22) == "unknown-link"
    assert list(tmp_path.iterdir()) == []


def damaged(folder):
    (folder / FILE).write_bytes(b"no database" * 1000)


def with_a_folder_in_its_place(folder):
    (folder / FILE).mkdir()


@pytest.mark.parametrize("spoil", [damaged, with_a_folder_in_its_place])
def test_a_file_that_cannot_be_used_is_a_problem(spoil, links, tmp_path):
    (tmp_path / "links").mkdir()
    spoil(tmp_path / "links")
    with pytest.raises(Problem) as caught:
        links.keep("text=a")
    assert (caught.value.status_code, caught.value.kind) == (503, "links-unavailable")
    assert str(tmp_path) not in caught.value.detail, "a path is the operator's"


def test_a_folder_that_cannot_be_made_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("")
    links = Links(Settings(links_dir=tmp_path / "file" / "links"))
    with pytest.raises(Problem) as caught:
        links.keep("text=a")
    assert caught.value.kind == "links-unavailable"


@pytest.mark.parametrize(
    ("pragma", "reason"), [("max_page_count = 1", "full"), ("query_only = ON", "readonly")]
)
def test_a_full_or_read_only_disk_is_a_problem_and_kept_links_are_read(
    pragma, reason, links, monkeypatch
):
    link_id, _ = links.keep("text=a")
    connected = links._connected

    def limited():
        file = connected()
        file.execute(f"PRAGMA {pragma}")
        return file

    monkeypatch.setattr(links, "_connected", limited)
    with pytest.raises(Problem) as caught:
        links.keep("a" * 100_000)
    assert (caught.value.status_code, caught.value.kind) == (503, "links-unavailable")
    assert reason in caught.value.detail
    assert links.state(link_id) == "text=a"


def test_on_a_full_disk_the_oldest_links_make_room(links, tmp_path, monkeypatch, caplog):
    """SQLite reports a bound on its pages as it reports a full disk."""
    first = [links.keep("a" * 20_000)[0] for _ in range(5)]
    n_pages = (tmp_path / "links" / FILE).stat().st_size // 4_096
    connected = links._connected

    def limited():
        file = connected()
        file.execute(f"PRAGMA max_page_count = {n_pages}")
        return file

    monkeypatch.setattr(links, "_connected", limited)
    for _ in range(8):
        new, _ = links.keep("b" * 30_000)
        assert links.state(new) == "b" * 30_000
    assert kind_of(links, first[0]) == "unknown-link"
    assert "oldest ones made room" in caplog.text


def test_a_reader_makes_no_file_next_to_the_links(links, tmp_path):
    link_id, _ = links.keep("text=a")
    before = sorted((tmp_path / "links").iterdir())
    links.state(link_id)
    assert sorted((tmp_path / "links").iterdir()) == before


def test_a_worker_that_writes_for_long_is_a_problem_that_passes(links, tmp_path, monkeypatch):
    links.keep("text=a")
    monkeypatch.setattr("headlight.serving.links.BUSY_SECONDS", 0.01)
    other = sqlite3.connect(tmp_path / "links" / FILE, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Problem) as caught:
            links.keep("text=b")
        assert caught.value.kind == "links-busy"
        assert caught.value.headers["Retry-After"] == "1"
    finally:
        other.close()
