"""The curve of a server's memory: what counts as growth."""

from memory import MEGABYTE, Point, growth


def curve_of(*points):
    return [Point(n_requests=n, rss=rss * MEGABYTE, cache_bytes=0) for n, rss in points]


def test_growth_counts_from_where_things_have_settled():
    curve = curve_of((250, 300), (510, 400), (760, 460), (1_000, 430))
    assert growth(curve) == 30 * MEGABYTE


def test_a_curve_too_short_to_settle_has_not_grown():
    assert growth(curve_of((250, 300))) == 0
