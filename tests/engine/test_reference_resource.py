"""Who holds a resource can use it; the last one to let go cleans up, once."""

from __future__ import annotations

import threading

from crashmq.engine.store.logfile.reference_resource import ReferenceResource

ROUNDS = 200


class Counted(ReferenceResource):
    """Counts how often it was cleaned up."""

    def __init__(self) -> None:
        super().__init__()
        self.cleaned_up = 0

    def clean_up(self) -> None:
        self.cleaned_up += 1


def test_it_is_cleaned_up_when_its_owner_lets_go() -> None:
    resource = Counted()

    resource.shutdown()
    resource.shutdown()

    assert (resource.cleaned_up, resource.is_cleaned_up) == (1, True)


def test_a_holder_keeps_it_after_its_owner_let_go() -> None:
    resource = Counted()
    assert resource.hold()

    resource.shutdown()

    assert (resource.cleaned_up, resource.is_available) == (0, False)
    resource.release()
    assert resource.cleaned_up == 1


def test_nobody_gets_hold_of_it_after_its_owner_let_go() -> None:
    resource = Counted()
    resource.hold()
    resource.shutdown()

    assert not resource.hold()

    assert resource.cleaned_up == 0
    resource.release()
    assert not resource.hold()
    assert resource.cleaned_up == 1


def test_a_holder_that_lets_go_first_leaves_it_to_the_owner() -> None:
    resource = Counted()
    resource.hold()
    resource.release()

    assert (resource.cleaned_up, resource.is_available) == (0, True)
    assert resource.hold()


def test_threads_that_race_with_the_owner_clean_up_once() -> None:
    resources = [Counted() for _ in range(ROUNDS)]
    used_after_clean_up: list[Counted] = []
    begin = threading.Barrier(4)

    def use() -> None:
        begin.wait(60)
        for resource in resources:
            if resource.hold():
                if resource.cleaned_up:
                    used_after_clean_up.append(resource)
                resource.release()

    users = [threading.Thread(target=use) for _ in range(3)]
    for user in users:
        user.start()
    begin.wait(60)
    for resource in resources:
        resource.shutdown()
    for user in users:
        user.join(60)

    assert used_after_clean_up == []
    assert {resource.cleaned_up for resource in resources} == {1}
