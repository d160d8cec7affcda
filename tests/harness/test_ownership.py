from __future__ import annotations

from pathlib import Path

from crashmq.harness.ownership import PACKAGES, foreign_packages, foreign_sentence


def test_in_our_own_tree_every_package_is_ours() -> None:
    assert foreign_packages() == []


def test_a_package_that_lies_elsewhere_is_named_with_its_place(tmp_path: Path) -> None:
    found = foreign_packages(home=tmp_path)

    assert [name.split()[0] for name in found] == list(PACKAGES)
    assert str(Path(__file__).parents[2]) in found[0]


def test_the_sentence_names_what_is_foreign_and_what_to_do() -> None:
    sentence = foreign_sentence(["models (in /home/me/project)"])

    assert "models (in /home/me/project)" in sentence
    assert "rename yours" in sentence
