"""GET /chapters and /chapters/{id}, POST /chapters/read and /chapters/answer."""

from tests.app.chapters.test_chapter import HEAD, STEP

API = "/api/v1/chapters"


def test_chapters_are_listed_and_sent_with_their_steps(client):
    listed = client.get(API).json()
    lookup = next(each for each in listed["chapters"] if each["id"] == "lookup")
    steps = client.get(f"{API}/lookup").json()["steps"]
    assert (lookup["n_steps"], listed["unavailable"]) == (len(steps), {})
    assert steps[0]["link"].startswith("/#")
    missing = client.get(f"{API}/nothing")
    assert (missing.status_code, missing.json()["type"][-15:]) == (404, "unknown-chapter")


def test_a_dropped_file_is_read_and_a_fault_has_its_line(client):
    read = client.post(f"{API}/read", json={"text": HEAD + STEP})
    assert (read.status_code, read.json()["title"]) == (200, "A title")
    bad = client.post(f"{API}/read", json={"text": HEAD + STEP.replace("Some", "<script>")})
    assert bad.status_code == 422
    assert "line 15" in bad.json()["detail"]


def test_an_answer_is_that_of_the_trace(client):
    opens = {"model": "tiny", "text": "the cat sat", "layer": 0, "head": 1}
    body = {
        "text": "the cat sat",
        "model": "tiny",
        "capture": ["*.layers.0.self_attention.weights"],
    }
    weights = client.post("/api/v1/trace", json=body).json()["tensors"]
    row = weights["decoder.layers.0.self_attention.weights"]["data"][1][-1]
    asked = {"opens": opens, "answer": {"of": "strongest_key"}}
    right = client.post(f"{API}/answer", json=asked).json()
    assert (right["right"], right["number"]) == (row.index(max(row)), max(row))


def test_an_answer_is_that_of_the_experiment(client):
    answer = {"of": "experiment", "array": "expected_variance", "at": {"scaled": "no", "width": 4}}
    asked = {"opens": {"experiment": "scaling", "knobs": {"width": 4}}, "answer": answer}
    assert client.post(f"{API}/answer", json=asked).json()["right"] == 4.0


def test_an_answer_that_there_is_not_is_refused_in_a_sentence(client):
    opens = {"model": "tiny", "text": "the cat sat", "layer": 0, "head": 1}
    for wrong, answer, said in (
        ({"model": "none"}, {"of": "next_token"}, "none"),
        ({"layer": 9}, {"of": "weight", "key": 0}, "layers.9"),
        ({"head": 9}, {"of": "weight", "key": 0}, "head 9"),
        ({}, {"of": "experiment", "experiment": "no", "array": "x"}, "no experiment"),
        (
            {"experiment": "scaling", "knobs": {"width": 0}},
            {"of": "experiment", "array": "x"},
            "width",
        ),
    ):
        refused = client.post(f"{API}/answer", json={"opens": {**opens, **wrong}, "answer": answer})
        assert refused.status_code in (404, 422), refused.text
        assert said in refused.json()["detail"]


def test_a_chapter_for_any_model_is_about_the_one_that_is_named(client):
    listed = {each["id"]: each["is_for_any"] for each in client.get(API).json()["chapters"]}
    assert (listed["your-copy"], listed["two-steps"]) == (True, False)
    refused = client.get(f"{API}/your-copy", params={"model": "tiny"})
    assert (refused.status_code, refused.json()["type"][-13:]) == (422, "nothing-found")
    file = HEAD.replace("---\n\n", "finds: word\n---\n\n") + STEP
    body = {"text": file.replace("layer: 0", "layer: {{layer}}"), "model": "tiny"}
    read = client.post(f"{API}/read", json=body)
    assert read.status_code == 200, read.text
    assert "{{" not in read.text.partition('"steps"')[2]
