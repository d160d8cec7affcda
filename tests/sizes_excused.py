"""Who is larger than ``test_layers.py`` allows today, and how large; it only shrinks.

``python tests/test_layers.py`` prints what the list would have to be.
"""

from __future__ import annotations

EXCUSED: dict[str, dict[str, int]] = {
    "engine/broker/broker_controller.py": {
        "BrokerController attributes": 19,
        "imports": 22,
    },
    "engine/broker/processor/pull_message_processor.py": {
        "PullMessageProcessor.__init__ parameters": 7,
        "imports": 16,
    },
    "engine/store/clean/clean_commit_log_service.py": {
        "CleanCommitLogService.__init__ parameters": 8
    },
    "engine/store/clean/deletion.py": {"Deletion.__init__ parameters": 10},
    "engine/store/commit_log.py": {"CommitLog attributes": 18, "imports": 20},
    "engine/store/foreign.py": {"count_queues parameters": 7},
    "engine/store/index/index_service.py": {"IndexService attributes": 16},
    "engine/store/logfile/mapped_file.py": {"MappedFile attributes": 17},
    "engine/store/logfile/mapped_file_queue.py": {"MappedFileQueue attributes": 13},
    "engine/store/message/message.py": {"Message attributes": 13},
    "engine/store/message/message_codec.py": {"check_message parameters": 7},
    "engine/store/message_store.py": {
        "MessageStore attributes": 29,
        "MessageStore booleans": 4,
        "imports": 32,
    },
    "engine/store/queue/consume_queue.py": {"ConsumeQueue attributes": 13},
    "engine/store/queue/consume_queue_store.py": {"imports": 16},
    "engine/store/queue/queue_audit.py": {"QueueAudit attributes": 15},
    "engine/store/start_up.py": {
        "StartUp attributes": 15,
        "StartUp booleans": 4,
        "StartUp.__init__ parameters": 8,
        "imports": 20,
    },
    "engine/store/store_checkpoint.py": {"StoreCheckpoint attributes": 15},
    "harness/commands/mutants.py": {"command parameters": 13, "imports": 17},
    "harness/disk/controls.py": {"Controls attributes": 17},
    "harness/disk/inode.py": {"Inode attributes": 16},
    "harness/episodes/episode.py": {
        "Episode attributes": 15,
        "Episode.__init__ parameters": 7,
        "imports": 16,
    },
    "harness/explore/certificate.py": {"Certificate attributes": 17},
    "harness/explore/recovery.py": {"imports": 17},
    "harness/judging/all_that_is_asked.py": {"imports": 16},
    "harness/judging/judge.py": {"imports": 17},
    "harness/mutants/search_slices.py": {"imports": 16},
    "harness/scheduling/activity.py": {"Activity attributes": 14},
    "harness/scheduling/sim_runtime.py": {"SimRuntime attributes": 20},
    "harness/subjects/clients.py": {"imports": 24},
    "harness/subjects/python_store.py": {"PythonStore attributes": 16, "imports": 27},
    "models/files/log.py": {"read_log parameters": 7},
    "models/history.py": {"Step attributes": 32, "Step booleans": 4},
    "models/knowledge/knowledge.py": {"Knowledge attributes": 18, "imports": 20},
    "models/knowledge/moments.py": {"StartOver booleans": 5},
    "models/knowledge/promises.py": {"Promises booleans": 4},
    "models/knowledge/reference.py": {
        "ReferenceModel attributes": 25,
        "ReferenceModel booleans": 4,
    },
    "models/knowledge/walk.py": {"imports": 20},
    "models/knowledge/walk_start.py": {"imports": 17},
    "models/laws/reading.py": {"pull_is_answered_right parameters": 7},
    "models/laws/recovery.py": {"refuses_only_damage parameters": 7},
    "scenarios/catalogue/scenarios.py": {"imports": 17},
    "scenarios/programs/workload.py": {"imports": 18},
}
