"""A site on a disk: its files, its answers, and what it refuses."""

import base64
import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from headlight.chapters import library
from headlight.chapters.chapter import read_chapter
from headlight.client.decode import read_trace
from headlight.model.experiments.experiment_registry import EXPERIMENTS
from headlight.model.experiments.shipped import shipped
from headlight.site import folder
from headlight.site.answers import Answers, Reading
from headlight.site.folder import MARK, Plan, SiteError, write_site
from tests.app.chapters.test_chapter import HEAD
from tests.app.commands.test_chapter import STEPS

WRONG = STEPS.replace("layer: 0", "layer: 9")


@pytest.fixture(autouse=True, scope="module")
def small():
    """Let a site have one experiment, and no chapters of the project."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder, "EXPERIMENTS", {"scaling": EXPERIMENTS["scaling"]})
        patch.setattr(folder.Library, "chapters", lambda _: ([], {}))
        yield


TEXT = Reading("dense", "the cat “sat” <b>", is_whole=True)


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("chapters") / "mine.md"
    path.write_text(HEAD + STEPS)
    return Plan(chapters=[path], texts=[TEXT])


@pytest.fixture(scope="module")
def site(tmp_path_factory, settings, plan):
    out = tmp_path_factory.mktemp("sites") / "site"
    write_site(out, plan, settings)
    return out


def held(path):
    """Return what a file hands over."""
    packed = re.search(r'= "([^"]+)"', path.read_text())[1]
    return gzip.decompress(base64.b64decode(packed))


def the(out, kind):
    (path,) = (out / "data").glob(f"{kind}-*.js")
    return json.loads(held(path))


def contents(out):
    return {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_a_site_holds_every_example_given_texts_chapters_and_experiments(site, model_ids):
    index = the(site, "index")
    texts = {(each["model"], each["text"]) for each in index["texts"]}
    assert texts >= {*((model, "The cat sat.") for model in model_ids), (TEXT.model, TEXT.text)}
    assert [each["id"] for each in index["catalogue"]["models"]] == model_ids
    assert sorted(index["files"]) == ["/api/v1/chapters/mine", "/api/v1/experiments/scaling"]
    steps = the(site, "chapter")["chapter"]["steps"]
    assert [step["link"].partition("#")[0] for step in steps] == ["index.html", "experiments.html"]
    pages = {page.name for page in site.glob("*.html")}
    assert pages >= {"index.html", "experiments.html", "docs.html", "docs-api.html"}


def test_links_between_documents_lead_to_pages_of_the_site(site):
    pages = {page.name for page in site.glob("*.html")}
    texts = [page.read_text() for page in site.glob("docs*.html")]
    linked = {page for text in texts for page in re.findall(r'href="(docs[^"#]*)', text)}
    assert {"docs-page.html", "docs-add.html"} <= linked <= pages


def test_pages_name_no_address_from_the_root_and_no_other_host(site):
    for page in ("index.html", "experiments.html"):
        addresses = re.findall(r'\b(?:src|href)="([^"]+)"', (site / page).read_text())
        assert addresses
        for address in addresses:
            assert address.startswith(("data", "index.html", "experiments.html", "docs", "#"))


def test_what_is_right_is_that_of_the_checker(site, settings, plan):
    (first, second) = the(site, "chapter")["outcomes"]
    steps = read_chapter(plan.chapters[0].read_text(), "mine.md", "mine").steps
    checker = Answers(settings).checker
    right = [checker.outcome(step.question.answer, step.opens) for step in steps]
    assert [first["outcome"]["right"], second["outcome"]["right"]] == [each.right for each in right]


def test_an_experiment_has_its_standard_run_that_of_a_step_and_others(site):
    runs = the(site, "experiment")["runs"]
    values = [run["values"] for run in runs]
    assert values[:2] == [{}, {"width": 4}]
    assert {"width": 512} in values
    assert all(run["frames"] for run in runs)
    assert runs[1]["start"]["parameters"]["width"] == 4


def test_an_experiment_that_measures_the_machine_has_no_run(settings):
    held = Answers(settings).experiment(EXPERIMENTS["cost"], [])
    assert held["runs"] == []
    assert held["description"]["id"] == "cost"


def test_an_experiment_of_a_model_that_is_not_installed_has_no_run(settings, monkeypatch):
    monkeypatch.setattr("headlight.model.checkpoint.loading.ZOO", Path("nowhere"))
    notes = []
    shipped.cache_clear()
    assert Answers(settings, notes.append).experiment(EXPERIMENTS["policy"], [])["runs"] == []
    assert "'sums-imitation'" in notes[0]


def test_a_smaller_archive_lacks_only_the_vectors(settings):
    answers = Answers(settings)
    card = next(card for card in answers.cards() if card["id"] == "tiny")
    whole, small = (
        trace_in(answers.archive(Reading("tiny", "the cat sat", is_whole=is_whole), card))
        for is_whole in (True, False)
    )
    assert set(small) < set(whole)
    assert not any(site.endswith("queries") for site in small)
    assert any(site.endswith("attention.weights") for site in small)
    assert set(small.analyses) == set(whole.analyses) - {"head_outputs"}


def trace_in(archive):
    size = int.from_bytes(archive[:4], "little")
    header = json.loads(archive[4 : 4 + size])
    planes = np.frombuffer(archive[4 + size :], np.uint8).reshape(4, -1)
    return read_trace(planes.T.tobytes()[: header["whole"]["end"]])


@pytest.mark.parametrize("is_late", [False, True])
def test_an_interrupted_site_leaves_the_earlier_one(tmp_path, settings, monkeypatch, is_late):
    out, rename = tmp_path / "site", Path.rename
    out.mkdir()
    (out / MARK).write_text("{}")

    def interrupted(path, target=out):
        if target != out or path.name == "earlier":
            return rename(path, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", interrupted)
        if not is_late:
            patch.setattr(Answers, "cards", lambda _: interrupted(tmp_path))
        with pytest.raises(KeyboardInterrupt):
            write_site(out, Plan(), settings)
    assert [path.name for path in tmp_path.iterdir()] == ["site"]
    assert [path.name for path in out.iterdir()] == [MARK]


def test_a_site_written_over_another_differs_in_no_byte(site, tmp_path, settings, plan):
    out = tmp_path / "site"
    out.mkdir()
    (out / MARK).write_text("{}")
    (out / "old.js").write_text("")
    shares = []
    n_bytes = write_site(out, plan, settings, shares.append)
    assert contents(out) == contents(site)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert n_bytes == sum(map(len, contents(site).values()))


def test_a_site_replaces_nothing_but_a_site(tmp_path, settings):
    out = tmp_path / "site"
    out.mkdir()
    (out / "mine.js").write_text("")
    with pytest.raises(SiteError, match="holds something else than a site; name another folder"):
        write_site(out, Plan(), settings)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SiteError, match="is a file; name a folder"):
        write_site(tmp_path / "file", Plan(), settings)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (HEAD + WRONG, "mine, step 'A view': "),
        ("---\ntitle: [\n---\n", "mine.md, line "),
        (HEAD + STEPS.replace("model: tiny", "model: nothing"), "there is no model 'nothing'"),
    ],
)
def test_a_chapter_that_cannot_be_answered_leaves_nothing(tmp_path, settings, text, reason):
    path = tmp_path / "mine.md"
    path.write_text(text)
    with pytest.raises(SiteError, match=re.escape(reason)):
        write_site(tmp_path / "site", Plan(chapters=[path]), settings)
    assert [each.name for each in tmp_path.iterdir()] == ["mine.md"]


def test_a_shipped_chapter_of_a_model_that_is_not_installed_is_left_out(settings, monkeypatch):
    chapters = [
        read_chapter(HEAD + STEPS.replace("tiny", each), f"{each}.md", each)
        for each in ("tiny", "fill")
    ]
    monkeypatch.setattr(folder.Library, "chapters", lambda _: (chapters, {}))
    monkeypatch.setattr(library, "way_to_the_zoo", lambda: "; more")
    notes = []
    assert folder._chapters([], settings, notes.append) == chapters[:1]
    assert notes == ["left out chapter fill.md: needs fill; more"]


def test_two_chapters_of_one_name_are_refused(tmp_path, settings, plan):
    (path,) = plan.chapters
    with pytest.raises(SiteError, match="two chapters of the name 'mine'; rename one file"):
        write_site(tmp_path / "site", Plan(chapters=[path, path.parent]), settings)


def test_models_that_a_page_computes_are_names_and_globs():
    known = ["stories", "positions-b", "positions-a"]
    asked = list(folder._live(["stories", "positions-*"], known))
    assert asked == ["stories", "positions-a", "positions-b"]
    with pytest.raises(ValueError, match="there is no model 'story'; there are stories"):
        list(folder._live(["story"], known))
