"""Texts that people type: mostly their own sentences, often an example."""

SUBJECTS = ["the cat", "a little girl", "her old dog", "the red hen", "a boy named Tim", "the moon"]
VERBS = ["saw", "found", "wanted", "lost", "liked", "looked for", "gave away", "dreamt of"]
OBJECTS = ["a ball", "the big tree", "some bread", "a shiny stone", "his friend", "the blue boat"]
PLACES = ["in the garden", "near the lake", "under the bed", "at school", "behind the barn"]
JOINTS = ["and then", "because", "but", "so", "while", "until"]

EXAMPLES = {
    "stories": [
        "Once upon a time there was a little light.",
        "The cat sat on the mat because it was tired.",
        "The little red hen ran to the barn. The little red hen was happy.",
        "Lily and Tom went to the park.",
    ],
    "translate": ["The black cat is sleeping.", "I would like a cup of coffee, please."],
    "fill": ["The [MASK] sat on the mat.", "She opened the [MASK] and went inside."],
    "positions-rotary": ["One two three four one two three four."],
}

MODELS = list(EXAMPLES)
ODD_WORDS = ["Zoë", "naïve", "½ cup", "👩‍🚀", "東京", "مرحبا", "<b>bold</b>", "</s>", "it's", "—"]


def clause(chance):
    """A random clause: subject, verb, object and place."""
    words = [chance.choice(part) for part in (SUBJECTS, VERBS, OBJECTS, PLACES)]
    return f"{' '.join(words)} {chance.randint(2, 999)} times"


def sentence(chance, model):
    """A sentence of somebody's own: mostly short, sometimes a paragraph, now and then odd."""
    n_clauses = chance.choices([1, 2, 4, 8], weights=[50, 30, 15, 5])[0]
    if model in ("translate", "fill"):
        n_clauses = min(n_clauses, 4)
    text = clause(chance)
    for _ in range(n_clauses - 1):
        text += f" {chance.choice(JOINTS)} {clause(chance)}"
    if chance.random() < 0.1:
        text += f" {chance.choice(ODD_WORDS)}"
    if model == "fill":
        text = f"{text} [MASK]"
    return f"{text[0].upper()}{text[1:]}."


def anything(chance, model):
    """An example in one case of three, or else a sentence of one's own."""
    if chance.random() < 1 / 3:
        return chance.choice(EXAMPLES[model])
    return sentence(chance, model)
