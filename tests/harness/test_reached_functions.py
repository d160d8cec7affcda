"""The programs of the scenarios and the corpus run every function of the engine.

In a function that nothing runs no bug can be found. ``reach.json`` has the counts;
``crashmq corpus --reach`` counts again.
"""

from __future__ import annotations

import ast
from pathlib import Path

from crashmq import engine
from crashmq.harness.mutants.reach import packaged

ENGINE = Path(engine.__file__).parent
# The simulated host takes the place of the real one, which has tests of its own.
OF_ANOTHER_HOST = "crashmq.engine.host."
FOR_PEOPLE = ("_check", "__repr__")
NOT_RUN = {
    "no op asks it of an administrator": """
        MessageStore.losses MessageStore.add_dispatcher
        LocalFileOffsetStore.clone_offset_table
        RunningFlags.bits RunningFlags.is_cq_writeable""",
    "no program meets the refusal": """
        _no_such_group _nowhere _untold illegal""",
    "the simulation turns rounds itself": """
        BrokerController.waited_for DefaultMQPushConsumer.waiting
        DefaultMQPushConsumer.notify_consumer_ids_changed PullMessageService.on_work
        RebalanceService.on_work WaitingRequests.waiting GroupCommitService.on_work
        Rounds.run_last Rounds.on_work Delays.__len__""",
    "its subclasses have another, or only tests read it": """
        ConfigTable.persist Expression.evaluate Condition.evaluate
        AllocateMachineRoomNearby.name AllocateMessageQueueByConfig.name
        AllocateMessageQueueByMachineRoom.name AllocateMessageQueueConsistentHash.name
        CommitLog.appends_prop_crc ConsumerOffsetManager.has_offset_reset
        ReferenceResource.is_cleaned_up ReferenceResource.clean_up
        StoreStatsService.count_dispatched""",
    "no program has such files or queues": """
        _has_file _content _topics_in IndexService._file_size
        MappedFileQueue.reset_offset ConsumeQueue.roll_next_file""",
}
"""Why no program runs these; each is a hole until there is one."""


def protocols() -> set[tuple[str, str]]:
    """Module and name of each class that only says what others have."""
    found = set()
    for path in ENGINE.rglob("*.py"):
        parts = path.relative_to(ENGINE).with_suffix("").parts
        module = ".".join(("crashmq.engine", *parts))
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
                if "Protocol" in bases:
                    found.add((module, node.name))
    return found


def test_each_function_of_the_engine_is_run_by_some_program() -> None:
    ports = protocols()
    never = {
        name
        for module, functions in packaged().functions.items()
        for name, lines in functions.items()
        if set(lines.kinds) == {-1}
        and not module.startswith(OF_ANOTHER_HOST)
        and not name.endswith(FOR_PEOPLE)
        and (module, name.rpartition(".")[0]) not in ports
    }

    assert sorted(never) == sorted(" ".join(NOT_RUN.values()).split())
