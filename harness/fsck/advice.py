"""What to do now, by what is wrong: the sentences with which a report ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crashmq.harness.fsck.causes import (
    KEEP,
    REBUILD,
    RENAME,
    REPORT,
    RESTORE,
    SALVAGE,
    UNPACK,
    Cause,
)
from crashmq.harness.fsck.counts import Counts
from crashmq.models.files.store_image import StoreImage


def advice_on(
    words: str, image: StoreImage, counts: Counts, causes: Sequence[Cause]
) -> Iterator[str]:
    """The next steps, the most urgent one first; none for a store that is well.

    ``words`` name the store to a command.
    """
    remedies = {cause.remedy for cause in causes}
    refuses = counts.crashmq_refuses if counts.is_ours else counts.rocketmq_refuses
    if causes or counts.lost or refuses:
        yield "Keep a copy of the directory before anything starts on it."
    starter = "crashmq" if counts.is_ours else "RocketMQ"
    if counts.lost:
        yield (
            f"Do not start {counts.loser} on it: {counts.lost:,} whole messages would "
            f"be lost."
        )
    elif refuses:
        yield f"{starter} refuses to start on it as it is."
    if UNPACK in remedies:
        yield (
            f"A file whose name begins with that of the missing one may be it: unpack "
            f"it if it is packed, give it that name, and run `crashmq fsck` again. If "
            f"it is another file, `crashmq salvage {words} --out NEW` keeps every "
            f"whole message."
        )
    if SALVAGE in remedies or (counts.lost and counts.behind_damage):
        yield (
            f"The log itself is damaged. Put its files back from a replica or "
            f"a backup if there is one; otherwise `crashmq salvage {words} --out NEW` "
            f"keeps every whole message in a directory that RocketMQ starts on."
        )
    elif (REBUILD in remedies or counts.lost) and RENAME not in remedies:
        yield (
            f"The log is whole: `crashmq rebuild {words} --out NEW` makes queues, "
            f"index and checkpoint again from it."
        )
    if RENAME in remedies:
        yield (
            "Give each file that is named above its number in 20 digits, with zeros in "
            "front; RocketMQ takes files in the order of their names."
        )
    if KEEP in remedies:
        yield (
            "RocketMQ takes the odd messages as they are, and nothing in the "
            "directory says how they were. Put the log's files back from a replica or "
            "a backup if there is one."
        )
    if RESTORE in remedies:
        yield "Put the named files back from a backup, or take them out."
    if REPORT in remedies:
        yield "crashmq failed on a part of it; please report that with these files."
    if refuses and not causes and not counts.lost:
        yield f"`crashmq salvage {words} --out NEW` makes one that it starts on."
    elif not causes and not counts.lost and image.abort:
        yield f"Nothing: a start of {starter} recovers it without losing a message."
