"""Laws of groups' topics: when they are written, and what their version counts."""

from __future__ import annotations

from crashmq.harness.disk.profiles import PROFILES
from crashmq.models.files.config_files import TOPICS_PATH, version_of
from crashmq.models.history import (
    FilePlanted,
    Happening,
    History,
    LifeEnded,
    OpBegan,
    OpEnded,
    ProgressAnswered,
    ProgressAsked,
    Step,
)
from crashmq.models.knowledge.group_configs import DEFAULT, GroupConfig, GroupConfigs
from crashmq.models.knowledge.progress import TopicsWritten
from crashmq.models.knowledge.promises import Promises
from crashmq.models.knowledge.topics import Shape, Topics
from crashmq.models.laws.group_topics import (
    a_group_is_as_it_was_configured,
    a_legal_change_is_confirmed,
    a_topic_has_the_queues_asked_for,
    a_topic_is_as_it_was_changed,
    a_topic_is_written_before_it_is_used,
    sent_to_a_queue_of_its_topic,
    the_version_counts_changes,
)
from crashmq.models.messages import message_for
from crashmq.models.observations import Done, Planted, World
from crashmq.models.ops import (
    ChangeTopic,
    ConfigureGroup,
    Crash,
    PutMessage,
)

PROMISES = Promises(PROFILES["ext4_ordered"])
WRITTEN = TopicsWritten(frozenset({"%RETRY%g"}), frozenset({"g"}), "a table", 3)


def test_a_group_and_its_topics_are_written_before_they_are_used() -> None:
    judge = a_topic_is_written_before_it_is_used.violations

    assert not judge("g", WRITTEN, frozenset({"%RETRY%g"}))
    assert judge("g", WRITTEN, frozenset({"%DLQ%g"}))
    assert judge("h", WRITTEN, frozenset())


def test_a_topic_of_a_sent_message_has_the_eight_queues_asked_for() -> None:
    judge = a_topic_has_the_queues_asked_for.violations

    assert not judge("N0", 8)
    assert judge("N0", 4)
    assert judge("N0", -1)


def test_a_group_retries_as_often_as_it_may_be_configured() -> None:
    groups = GroupConfigs()
    groups.of["g"] = frozenset({TOLD, GroupConfig(0, 1)})

    assert groups.retries_of("g") == {3, 0}
    assert groups.retries_of("h") == {16}
    groups.forget()
    assert groups.retries_of("h") == frozenset()


def test_the_same_topics_have_the_same_version() -> None:
    judge = the_version_counts_changes.violations

    assert not judge(WRITTEN, WRITTEN)
    assert not judge(WRITTEN._replace(version=4, rows="another table"), WRITTEN)
    assert judge(WRITTEN._replace(version=4), WRITTEN)


def test_the_version_of_a_config_file_is_the_counter_that_it_says() -> None:
    text = b'{"dataVersion":{"counter":7},"topicConfigTable":{}}'

    assert version_of({TOPICS_PATH: text}, TOPICS_PATH) == 7
    assert version_of({TOPICS_PATH: b"torn"}, TOPICS_PATH) == -1
    assert version_of({}, TOPICS_PATH) == -1


def test_a_group_is_configured_as_one_of_those_that_may_count() -> None:
    judge = a_group_is_as_it_was_configured.violations
    rows = {"g": {"retryMaxTimes": 3, "consumeTimeoutMinute": 15}}
    told = GroupConfig(3, 15)

    assert not judge(rows, {"g": frozenset({told})})
    assert not judge(rows, {"g": frozenset({told, DEFAULT}), "h": frozenset({DEFAULT})})
    assert judge(rows, {"g": frozenset({DEFAULT})})
    assert judge(rows, {"g": frozenset({told}), "h": frozenset({told})})


CONFIGURES = ConfigureGroup("g", retry_max_times=3)
TOLD = GroupConfig(3, 15)


def known_after(*events: Happening) -> GroupConfigs:
    """What is known of groups after a step in which they are configured."""
    history = History()
    ended = OpEnded(Done(), 0, World(), is_unreadable=False)
    for event in (OpBegan(CONFIGURES, World()), *events, ended):
        history.append(0, 0, event)
    groups, promises = GroupConfigs(), Promises(PROFILES["ext4_ordered"])
    step = Step(CONFIGURES, history.entries)
    for entry in step.entries:
        groups.saw(entry.event, step, promises)
    return groups


def test_what_a_crash_may_have_cut_short_counts_or_not() -> None:
    killed = LifeEnded(Crash("process_kill"))

    cut_short = known_after(ProgressAsked(CONFIGURES), killed)
    answered = known_after(
        ProgressAsked(CONFIGURES), ProgressAnswered(1, Done()), killed
    )

    assert cut_short.of == {"g": frozenset({TOLD, DEFAULT})}
    assert answered.of == {"g": frozenset({TOLD})}


def test_of_two_requests_at_once_nobody_knows_which_came_last() -> None:
    other = ConfigureGroup("g", consume_timeout_minute=1)

    groups = known_after(
        *(ProgressAsked(CONFIGURES), ProgressAsked(other)),
        *(ProgressAnswered(1, Done()), ProgressAnswered(2, Done())),
    )

    assert groups.of == {"g": frozenset({TOLD, GroupConfig(16, 1), DEFAULT})}


def test_once_files_are_changed_from_outside_only_an_answer_counts() -> None:
    planted = FilePlanted(Planted("config/x", 1))

    unanswered = known_after(planted, ProgressAsked(CONFIGURES))
    answered = known_after(
        planted, ProgressAsked(CONFIGURES), ProgressAnswered(2, Done())
    )

    assert unanswered.of == {}
    assert answered.of == {"g": frozenset({TOLD})}


def test_a_message_that_must_be_refused_is_not_stored() -> None:
    judge = sent_to_a_queue_of_its_topic.violations
    sent = message_for(PutMessage("T0", 8, 1), 1, 2, 3)

    assert not judge(sent, 0)
    assert judge(sent, 1)


def test_a_topic_is_in_the_file_as_it_was_changed() -> None:
    judge = a_topic_is_as_it_was_changed.violations
    rows = {"N0": {"readQueueNums": 9, "writeQueueNums": 2, "perm": 4}}
    told = Shape(9, 2, is_writeable=False)

    assert not judge(rows, {"N0": frozenset({told})})
    assert not judge(rows, {"N0": frozenset({told, Shape()})})
    assert not judge({}, {"N0": frozenset({told, Shape()})})
    assert judge({}, {"N0": frozenset({told})})
    assert judge(rows, {"N0": frozenset({told._replace(is_writeable=True)})})
    assert judge(rows, {"N0": frozenset({told._replace(read_queues=8)})})


def test_a_change_that_a_broker_must_carry_out_is_confirmed() -> None:
    judge = a_legal_change_is_confirmed.violations

    for change in (ChangeTopic("N0"), ConfigureGroup("g")):
        assert not judge(change, is_done=True)
        assert judge(change, is_done=False)


def test_a_change_that_was_not_answered_may_have_been_made_or_not() -> None:
    topics, told = Topics(), Shape(9, 2)
    history = History()
    history.append(0, 0, OpBegan(ChangeTopic("N0", 9, 2), World()))
    asked = history.append(0, 0, ProgressAsked(ChangeTopic("N0", 9, 2)))
    unanswered = Step(ChangeTopic("N0", 9, 2), history.entries)

    topics.saw(ProgressAsked(ChangeTopic("N0", 9, 2)), unanswered, PROMISES)

    assert topics.shapes_of("N0") == {Shape(), told}
    assert topics.read_queues("N0") is None
    topics.saw(ProgressAnswered(asked, Done()), unanswered, PROMISES)
    assert topics.shapes_of("N0") == {told}
    assert topics.read_queues("N0") == 9
    assert topics.read_queues("N1") == 8


def test_a_group_is_barred_until_it_is_certainly_allowed_to_consume() -> None:
    bars = ConfigureGroup("g", consume_enable=False)
    allows = ConfigureGroup("g", consume_broadcast_enable=True)
    asked = known_after(ProgressAsked(bars))
    barred = known_after(ProgressAsked(bars), ProgressAnswered(1, Done()))
    allowed = known_after(ProgressAsked(allows), ProgressAnswered(1, Done()))

    assert asked.barred == barred.barred == {"g"}
    assert asked.possible("g") == {DEFAULT, GroupConfig(16, 15, False)}
    assert barred.possible("g") == {GroupConfig(16, 15, False)}
    assert not allowed.barred


def test_that_a_group_was_barred_is_not_forgotten_with_its_configuration() -> None:
    groups = known_after(
        ProgressAsked(ConfigureGroup("g", consume_broadcast_enable=False)),
        FilePlanted(Planted("config/x", 1)),
    )

    assert groups.barred == {"g"}
    assert not groups.possible("g")
