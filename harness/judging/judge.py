"""The judge: a loop over the moments of a step, and over the laws of each moment.

``models.knowledge.walk`` updates what is known; at each of its moments the laws
declared for it (``harness.judging.asking``) are asked, if the facts hold that they
need. The first violation is raised as its law's own exception; an error in a law is
raised as unknown, and never ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from crashmq.harness.judging import all_that_is_asked  # noqa: F401  so it is asked
from crashmq.harness.judging.asking import Question, askable
from crashmq.harness.judging.first_known import first_known
from crashmq.models.files.store_image import Reader, StoreImage, read_store
from crashmq.models.history import Step
from crashmq.models.knowledge.facts import Fact
from crashmq.models.knowledge.knowledge import End
from crashmq.models.knowledge.moments import (
    AllDelivered,
    At,
    CaughtUp,
    FilesFound,
    LookedAt,
    Moment,
    StartLeft,
    StatisticsSeen,
    StoreUp,
)
from crashmq.models.knowledge.moments_of_consumers import (
    GroupCaughtUp,
    GroupIdle,
    QueuesShared,
)
from crashmq.models.knowledge.reference import ReferenceModel
from crashmq.models.knowledge.sharing import covered
from crashmq.models.knowledge.start_over import start_over
from crashmq.models.knowledge.walk_opaque import walk_for
from crashmq.models.observations import (
    HalfMade,
    Positions,
    Skipped,
    Started,
    Statistics,
)
from crashmq.models.ops import EVERYTHING, Capability
from crashmq.models.plain_state import forked
from crashmq.models.program import Setup

_ANYWHERE = 1 << 62
_NOWHERE = Positions(-1, -1, -1, -1)  # nobody asks where the log stands
_NOTHING_DONE = Step.that_saw(Skipped("nothing was done"))


class Judge:
    """What is known of one store's history, and the laws to judge it by.

    It can be forked at any step.

    Attributes:
        known: what is known after the newest step.
        checks: how often each law was asked.
        excused: how often each law was not, by the fact that did not hold; once if the
            subject can never have it.
    """

    def __init__(
        self,
        setup: Setup,
        subject: LookedAt,
        capabilities: frozenset[Capability] = EVERYTHING,
    ) -> None:
        """A judge of a new store, whose subject has these capabilities."""
        self.known = first_known(setup, capabilities)
        self._questions, never = askable(capabilities)
        self._walk = walk_for(capabilities)
        self.checks: dict[str, int] = {}
        self.excused: dict[tuple[str, Fact], int] = dict(never)
        self._subject = subject
        self._read: Reader = read_store
        self._image: StoreImage | None = None
        self._is_judging = False
        self._files: Mapping[str, bytes] | None = None

    def fork(self, subject: LookedAt, read: Reader | None = None) -> Judge:
        """A judge of another subject with the same history; ``read`` decodes files."""
        other = Judge.__new__(Judge)
        other.known = forked(self.known)
        other.checks, other.excused = self.checks, self.excused
        other._questions, other._walk = self._questions, self._walk
        other._subject, other._image = subject, self._image
        other._read = self._read if read is None else read
        other._is_judging, other._files = False, None
        return other

    def state(self) -> list[object]:
        """All that can change later verdicts on equal files, in a fixed order."""
        return self.known.state()

    @property
    def model(self) -> ReferenceModel:
        """What was appended, must survive, and may be read."""
        return self.known.model

    @property
    def is_unsure(self) -> bool:
        """Whether nothing can be judged any more, after damage that no CRC covers."""
        return self.known.tampering.log_has_hidden_rot

    @property
    def epoch_ms(self) -> int:
        """When the subject's wall clock began, in ms since the epoch."""
        return self._subject.epoch_ms

    def image(self) -> StoreImage:
        """The files as they are now, decoded; unchanged ones are not read again."""
        return self.image_of(self.all_files())

    def image_of(self, files: Mapping[str, bytes]) -> StoreImage:
        """Decode those of ``files`` that are the store's own."""
        ours = self.known.tampering.without_foreign(files)
        self._image = self._read(ours, self._image, self.known.setup.delay_levels)
        return self._image

    def files(self) -> Mapping[str, bytes]:
        """The store's files as they are now."""
        return self.known.tampering.without_foreign(self.all_files())

    def all_files(self) -> Mapping[str, bytes]:
        """The store's files and the foreign ones.

        Nothing runs while a step is judged, so they are read once for each step.
        """
        if not self._is_judging:
            return self._subject.files()
        if self._files is None:
            self._files = self._subject.files()
        return self._files

    def unsynced_from(self) -> Mapping[str, int]:
        """The files that a power loss could change, and where."""
        return self._subject.unsynced_from()

    def half_made(self) -> HalfMade:
        """The files whose creation is not durable."""
        return self._subject.half_made()

    def judge(self, step: Step, now: Positions) -> None:
        """Judge one step, and update what is known.

        Args:
            step: what was done, and its results.
            now: the positions that the store reports after the step.

        Raises:
            LawViolated: the first law that was violated, as its own class.
            LawUnknown: a law raised an error.
        """
        self._is_judging, self._files = True, None
        try:
            self.ask(self._walk(At(step, self.known, self, now)))
        finally:
            self._is_judging = False

    def ask(self, moments: Iterable[Moment]) -> None:
        """At each moment, ask each law declared for it whose facts hold."""
        asked, checks = self._questions, self.checks
        for moment in moments:
            for where, proofs, law_id, judge, ask, question in asked.get(
                type(moment), ()
            ):
                if where is not None and not where(moment):
                    continue
                for holds in proofs:
                    if not holds(moment):
                        self._excuse(question, proofs.index(holds))
                        break
                else:
                    if judge is None:
                        assert ask is not None, question
                        ask(moment, checks)
                        continue
                    # What follows is done here, and not by a function of each law:
                    # most of a judge's time is spent in this loop.
                    breaches = judge(moment)
                    checks[law_id] = checks.get(law_id, 0) + 1
                    try:
                        found = [*breaches]
                    except Exception as cause:
                        raise question.unknown(cause) from cause
                    if found:
                        raise question.violated(found)

    def _excuse(self, question: Question, number: int) -> None:
        """Count that a question is not asked, since one of its facts does not hold."""
        for law in question.laws:
            key = (law.id, question.needs[number])
            self.excused[key] = self.excused.get(key, 0) + 1

    def judge_caught_up(self, now: Positions, busy: Sequence[str]) -> None:
        """Ask the laws of a store in which no service should have work left."""
        self.ask([CaughtUp(_NOTHING_DONE, self.known, self, now, busy)])

    def judge_consumed(self) -> None:
        """Ask the laws of groups whose consumers should have nothing left to do."""
        known = self.known.consumption
        at = At(_NOTHING_DONE, self.known, self, _NOWHERE)
        for group, op in sorted(known.newest.items()):
            if known.subscriptions.is_torn(op.group, filters=self.known.setup.filters):
                continue
            if known.counts_others(op):
                continue
            members = known.members(group)
            living = [known.living[client] for client in members]
            queues = covered((living or [op])[0], living, self.known.setup)
            self.ask([QueuesShared(*at, group, queues, members)])
            for queue in queues:
                key = (group, *queue)
                left = [*known.passed_over(key, self.known.model, _ANYWHERE)]
                self.ask([GroupCaughtUp(*at, key, left)])

    def judge_idle(self) -> None:
        """Ask the law of groups whose consumers report that nothing is left to do."""
        known, model = self.known.consumption, self.known.model
        at = At(_NOTHING_DONE, self.known, self, _NOWHERE)
        filters = self.known.setup.filters
        for queue, told in sorted(known.told.items()):
            key = known.key_of(queue)
            if known.subscriptions.is_torn(queue.group, filters=filters):
                continue
            end = model.next_queue_offset(key[1:])
            if not end and model.dead_below(key[1:]):
                continue  # it was deleted, and is there no more to tell an end of
            if queue in known.shares and known.held_by(key) == [queue.client]:
                self.ask([GroupIdle(*at, key, told, end)])

    def judge_all_delivered(self, now: Positions) -> None:
        """Ask the law of a store in which every delayed message must be delivered."""
        self.ask([AllDelivered(_NOTHING_DONE, self.known, self, now)])

    def judge_statistics(self, seen: Statistics) -> None:
        """Compare the store's statistics with the puts it has answered."""
        self.ask([StatisticsSeen(_NOTHING_DONE, self.known, self, _NOWHERE, seen)])

    def judge_found_again(
        self, files: Mapping[str, bytes], step: Step, after: Mapping[str, bytes]
    ) -> int | None:
        """Judge the part of a start that depends only on the files it found.

        Args:
            files: the files it found.
            step: the step of another start with the same effects and, apart from the
                found files, the same events.
            after: the files that both left.

        Returns:
            The only value of these files on which the rest of the verdict depends; None
            if it depends on more.
        """
        known, start = self.known, step.starts[0]
        seen, setup = start.seen, known.setup
        if setup.keeps_progress or setup.delivers_delayed:
            return None
        if not step.is_alone or known.is_degraded:
            return None
        if not isinstance(seen, Started) or seen.damaged:
            return None
        found, at = self.image_of(files), At(step, known, self, _NOWHERE)
        self.ask([FilesFound(*at, found)])
        over = start_over(at, start, seen, found)
        self.ask([over])
        if known.tampering.damaged:
            return over.at_full_size.commit_log.max_phy_offset
        left = known.tampering.without_foreign(after)
        at = At(step, known, _LookAtFiles(self, left), _NOWHERE)
        ended = known.end is End.ORDERLY and not known.disk_failed
        before, full = known.left_by_start, over.at_full_size
        takes_over = known.tampering.is_found
        self.ask(
            [
                StoreUp(*at, found, seen, at.look.image()),
                StartLeft(*at, before, found, full, left, ended, takes_over),
            ]
        )
        return -1


class _LookAtFiles:
    """A look at given files, without a disk."""

    def __init__(self, judge: Judge, files: Mapping[str, bytes]) -> None:
        self.epoch_ms = judge.epoch_ms
        self._files = files
        self._read = judge._read
        self._levels = judge.known.setup.delay_levels

    def files(self) -> Mapping[str, bytes]:
        """The given files."""
        return self._files

    def all_files(self) -> Mapping[str, bytes]:
        """The given files."""
        return self._files

    def image(self) -> StoreImage:
        """The given files, decoded."""
        return self._read(self._files, None, self._levels)

    def image_of(self, files: Mapping[str, bytes]) -> StoreImage:
        """Other files, decoded."""
        return self._read(files, None, self._levels)

    def unsynced_from(self) -> Mapping[str, int]:
        """Nothing, since there is no disk."""
        return {}

    def half_made(self) -> HalfMade:
        """Nothing, since there is no disk."""
        return HalfMade()
