"""Messages with several places, or none: light queues, transactions, tags asked for."""

from __future__ import annotations

import pytest
from store_builder import RECORD_SIZE, StoreBuilder, queue_file

from crashmq.engine.store.message.message import LOCAL_BORN, Host
from crashmq.engine.store.message.message_codec import PROP_CRC_SIZE
from crashmq.engine.store.results import GetMessageStatus, PutMessageStatus
from crashmq.models.files.store_image import decode_record

A, B = "%LMQ%a", "%LMQ%b"


@pytest.fixture
def lights(store: StoreBuilder) -> StoreBuilder:
    return store.configured(
        enable_multi_dispatch=True,
        mapped_file_size_commit_log=4096,
        mapped_file_size_consume_queue=200,
    )


def put_to(store: StoreBuilder, *names: str, count: int = 1) -> StoreBuilder:
    return store.put(count, properties={"INNER_MULTI_DISPATCH": ",".join(names)})


def test_a_record_says_its_place_in_each_light_queue(lights: StoreBuilder) -> None:
    put_to(put_to(lights, A), A, B).reput()

    last = lights.image().commit_log.records[-1]
    assert last.light_places == ((A, 1), (B, 0))
    assert len(lights.queue(A)) == 2
    assert lights.queue(B)[0].phy_offset == last.phy_offset
    assert lights.served(A) == [0, 1]


def test_light_queues_go_on_where_they_ended(lights: StoreBuilder) -> None:
    put_to(lights, A, count=2).reput().kill()

    put_to(lights, A, B).reput()

    assert lights.served(A) == [0, 1, 2]
    assert lights.image().commit_log.records[-1].light_places == ((A, 2), (B, 0))


def test_undispatched_places_are_taken_from_the_log(lights: StoreBuilder) -> None:
    put_to(lights, A, count=2).kill()

    put_to(lights, A).reput()

    assert lights.served(A) == [0, 1, 2]


def test_a_light_queue_that_was_lost_is_built_again(lights: StoreBuilder) -> None:
    put_to(lights, A, count=3).make_all_durable().stop()
    lights.remove(queue_file(A)).restart().reput()

    assert lights.served(A) == [0, 1, 2]
    assert lights.served() == [0, 1, 2]


def test_a_list_with_another_name_in_it_poisons_nothing(lights: StoreBuilder) -> None:
    put_to(lights, "foo", A).put().reput()

    assert lights.results[0].status is PutMessageStatus.MESSAGE_ILLEGAL
    assert lights.served() == [1]
    assert lights.restart().served() == [1]


@pytest.mark.parametrize("topic", ["%RETRY%g", "rmq_sys_x", "SCHEDULE_TOPIC_XXXX"])
def test_messages_that_are_handled_once_more_are_in_no_light_queue(
    lights: StoreBuilder, topic: str
) -> None:
    lights.put(topic=topic, properties={"INNER_MULTI_DISPATCH": A}).reput()

    assert (A, 0) not in lights.image().queue_at
    assert lights.served(topic) == [0]


def test_where_light_queues_are_off_the_list_is_only_a_property(
    store: StoreBuilder,
) -> None:
    put_to(store, A).reput()

    (record,) = store.image().commit_log.records
    assert record.properties == {"INNER_MULTI_DISPATCH": A}
    assert (A, 0) not in store.image().queue_at


def test_prepared_and_rollback_records_take_no_place(lights: StoreBuilder) -> None:
    for sys_flag in (0x4, 0x8, 0xC, 0x0):
        put = {"INNER_MULTI_DISPATCH": A}
        lights.put(sys_flag=sys_flag, properties=put)
    lights.reput()

    assert [result.queue_offset for result in lights.results] == [0, 0, 0, 1]
    assert lights.served() == lights.served(A) == [1, 3]


def test_a_commit_names_the_message_it_ends(store: StoreBuilder) -> None:
    store.put(sys_flag=0x4).put(sys_flag=0x8, prepared_transaction_offset=100)

    prepared, commit = store.image().commit_log.records
    assert prepared.transaction_type == "prepared"
    assert commit.prepared_transaction_offset == 100
    assert commit.transaction_type == "commit"


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("*", [0, 1, 2, 3, 4]),
        ("", [0, 1, 2, 3, 4]),
        ("Aa", [0, 3]),
        ("Aa || 已付款💰", [0, 2, 3]),
        ("BB||nobody", [1]),
        ("A", []),
    ],
)
def test_a_pull_gets_the_tags_it_asks_for_though_hashes_are_equal(
    store: StoreBuilder, tags: str, expected: list[int]
) -> None:
    for name in ("Aa", "BB", "已付款💰", "Aa", ""):
        store.put(properties={"TAGS": name} if name else {})
    store.reput()

    result = store.live.get_message("T0", 0, 0, 32, tags)

    assert [int(bytes(decode_record(m).body)) for m in result.messages] == expected
    found, none = GetMessageStatus.FOUND, GetMessageStatus.NO_MATCHED_MESSAGE
    assert result.status is (found if expected else none)
    assert result.next_begin_offset == 5


@pytest.mark.parametrize("topic", ["t", "t" * 127, "t" * 128, "t" * 255])
@pytest.mark.parametrize("host", [LOCAL_BORN, Host(bytes(16), 1)])
def test_tags_are_found_in_records_of_every_form(
    store: StoreBuilder, topic: str, host: Host
) -> None:
    store.put(topic=topic, properties={"TAGS": "Aa"}, born_host=host).reput()

    result = store.live.get_message(topic, 0, 0, 32, "Aa")

    assert len(result.messages) == 1


def test_tags_are_asked_of_the_record_where_the_unit_has_a_delivery_time(
    store: StoreBuilder,
) -> None:
    topic = "SCHEDULE_TOPIC_XXXX"
    for tags in ("Aa", "other"):
        store.put(topic=topic, properties={"TAGS": tags, "DELAY": "3"})
    store.reput()

    result = store.live.get_message(topic, 0, 0, 32, "Aa")

    assert [decode_record(m).queue_offset for m in result.messages] == [0]
    assert result.next_begin_offset == 2


def test_a_start_cuts_a_record_whose_header_rots_under_its_crc(
    store: StoreBuilder,
) -> None:
    store.configured(enabled_append_prop_crc=True, force_verify_prop_crc=True)
    store.put(3).kill()
    at = 2 * (RECORD_SIZE + PROP_CRC_SIZE) + 48  # the host it was born on
    store.damage("commitlog/00000000000000000000", at, b"\x7e")

    store.restart().reput()

    assert store.served() == [0, 1]


def test_statistics_count_messages_bytes_and_times(store: StoreBuilder) -> None:
    store.put(2).put(topic="T1").put(topic="a/b")

    stats = store.live.stats

    assert stats.put_by_topic == {"T0": (2, 2 * RECORD_SIZE), "T1": (1, RECORD_SIZE)}
    assert stats.put_time_distribution == [3] + [0] * 12
    assert store.restart().live.stats.put_by_topic == {}
