"""How an answer becomes bytes: its form, its pieces, its coding, its tag."""
