"""Edits of the disk's rules: what a sync makes certain, what a power loss may leave."""

from __future__ import annotations

from harness_mutant import mutants_of

_ROWS = (
    (
        "D01",
        *("medium", "Medium.commit_dir"),
        *("parent_of(entry) == path", "parent_of(entry) != path"),
    ),
    (
        "D02",
        *("inode", "Inode._write_page"),
        *("[start:end] = self.cache[start:end]", "[start:] = self.cache[start:]"),
    ),
    ("D03", "inode", "Inode.write_back", "dirty_pages():", "dirty_pages()[:-1]:"),
    ("D04", "inode", "Inode.forget_dirty_pages", "self.pending = []", "pass"),
    ("D05", "inode", "Inode.evict", "start >> PAGE_BITS in dirty or (", "("),
    (
        "D06",
        *("inode", "Inode.commit_size"),
        *("self.durable[size:] = bytes(len(self.durable) - size)", "pass"),
    ),
    ("D07", "inode", "Inode.commit_size", "old[0] < action", "old[0] > action"),
    (
        "D08",
        *("survivors", "Hashed.merge"),
        *("newer[((draw >> 32) * len(newer)) >> 32]", "newer[-1]"),
    ),
    (
        "D09",
        *("survivors", "by_sector"),
        *("(offset + len(data) - 1) // size + 1", "offset // size + 1"),
    ),
    (
        "D10",
        *("survivors", "sector_versions"),
        *("range(begin - begin % store_size + store_size, end, store_size)", "()"),
    ),
    (
        "D11",
        *("survivors", "with_shorn"),
        "[new[:half] + old[half:], old[:half] + new[half:], garbage(len(old))]",
        "[new]",
    ),
    (
        "D12",
        *("survivors", "Hashed.effects"),
        *("pending[: (draw * (len(pending) + 1)) >> 32]", "pending[:]"),
    ),
    (
        "D13",
        *("survivors", "Hashed._end"),
        *("(draw * (len(ordered_actions) + 1)) >> 32", "len(ordered_actions)"),
    ),
    (
        "D14",
        *("survivors", "UpTo.effects"),
        *("effect.action <= self._action", "effect.action < self._action"),
    ),
    (
        "D15",
        *("survivors", "UpTo.merge"),
        *("action <= self._action", "action < self._action"),
    ),
    (
        "D16",
        *("survivors", "Hashed._stand"),
        *("return 1 + (((draw >> 32) * count) >> 32)", "return count"),
    ),
    ("D17", "crash_state", "in_no_order", "left[slot] -= 1", "left[slot] -= 0"),
    (
        "D18",
        *("crash_state", "_after_cuts"),
        *("base[size:] = bytes(len(base) - size)", "pass"),
    ),
    (
        "D19",
        *("crash_state", "_after_cuts"),
        *("(store[0] < made) == survives", "(store[0] < made) != survives"),
    ),
    ("D20", "crash_state", "fill_room", "if tail == 0:", "if tail >= 0:"),
    (
        "D21",
        *("crash_state", "layout"),
        *(
            "case Renamed(action, _, _, number, True):",
            "case Renamed(0, _, _, number):",
        ),
    ),
    (
        "D22",
        *("namespace", "reachable"),
        *("path != ROOT and kept.get(parent_of(path)) == DIRECTORY", "path != ROOT"),
    ),
    ("D23", "namespace", "apply_to_names", "names.pop(source, None)", "pass"),
    ("D24", "medium", "Medium.lose_power", "self._settle(left.names)", "pass"),
    (
        "D25",
        *("medium", "Medium.commit_file"),
        *("if self.profile.fsync_new_file_persists_name:", "if True:"),
    ),
    ("D26", "medium", "Medium._commit_slots", "slots |= touched", "pass"),
    ("D27", "medium", "Medium._commit_slots", "if rests_on_parents:", "if False:"),
    (
        "D28",
        *("medium", "Medium.rename"),
        *("self.profile.auto_da_alloc and self.namespace.has(target)", "False"),
    ),
    (
        "D29",
        *("medium", "Medium._commit_all_in_order"),
        *("if not inode.mapped:", "if True:"),
    ),
    (
        "D30",
        *("medium", "Medium._may_commit"),
        *("bool(pends) and profile.honours_sync", "bool(pends)"),
    ),
    ("D31", "medium", "Medium.room_for", "used + size > total", "used + size >= total"),
    (
        "D32",
        *("medium", "Medium.usage"),
        *("sum(sizes) + self.room.foreign_size", "sum(sizes)"),
    ),
    (
        "D33",
        *("sim_file", "SimFile.sync"),
        *(
            "number, inode.late_errno = inode.late_errno, 0",
            "number = inode.late_errno",
        ),
    ),
    (
        "D34",
        *("sim_file", "SimFile._write_piece"),
        *("if self._mapped:", "if not self._mapped:"),
    ),
    (
        "D35",
        *("sim_file", "SimFile._meet_sync_fault"),
        *("leave(self._inode, profile, self._controls.survivors)", "pass"),
    ),
    ("D36", "sim_file", "SimFile.sync", "if inode.cuts:", "if False:"),
    (
        "D37",
        *("sim_file", "SimFile.sync"),
        *("inode.unwritten and medium.profile.honours_sync", "False"),
    ),
    ("D38", "mount", "Mount.truncate", "if inode.open_files:", "if False:"),
    (
        "D39",
        *("units", "PendingUnits._name_units"),
        *("len(self._ordered) + 1", "len(self._ordered)"),
    ),
    (
        "D40",
        *("units", "PendingUnits._differing"),
        *(
            "profile.keeps_write_order and not inode.mapped",
            "profile.keeps_write_order",
        ),
    ),
    (
        "D41",
        "inode",
        "Inode.of_image",
        "stores[end][0] <= done",
        "stores[end][0] < done",
    ),
    ("D42", "medium", "Medium.durable_files", "UpTo(0)", "UpTo(1 << 62)"),
    ("D43", "controls", "Controls.next_due", "not w.fired and ", ""),
    ("D44", "controls", "Controls._meet", "elif fault.times > 1:", "else:"),
    ("D45", "unit_choice", "UnitChoice.merge", "if version > 0:", "if version > 1:"),
    (
        "D46",
        *("choices", "ordered_actions"),
        *("if profile.keeps_write_order:", "if False:"),
    ),
    (
        "D47",
        *("sim_file", "SimFile._write_back"),
        *("write_back_page(page, called)", "write_back_page(page, 1 << 62)"),
    ),
    (
        "D48",
        *("medium", "Medium._commit_all_in_order"),
        *("if effect.action <= until", "if effect.action"),
    ),
    (
        "D49",
        *("medium", "Medium._commit_slots"),
        *("effect.action > until or not", "not"),
    ),
    (
        "D50",
        *("inode", "Inode.write_back_page"),
        *("if len(done) == len(here):", "if True:"),
    ),
    (
        "D51",
        *("failed_sync", "leave"),
        *('if survivors.kind != "none":', "if False:"),
    ),
    (
        "D52",
        *("failed_sync", "leave"),
        *("profile, keeps_write_order=False, shorn", "profile, shorn"),
    ),
    (
        "D53",
        *("survivors", "with_torn"),
        *("[garbage(size), UNREADABLE[:size]]", "[garbage(size)]"),
    ),
    ("D54", "survivors", "tearable", "if not profile.torn_block:", "if True:"),
    (
        "D55",
        *("survivors", "bad_sectors"),
        *("if not profile.torn_block or", "if True or"),
    ),
    ("D56", "inode", "Inode.take_over", "self.bad = self.still_bad(content)", "pass"),
    (
        "D57",
        *("inode", "Inode.take_over"),
        *("self.unwritten = tuple(_without(self.unwritten, start, end))", "pass"),
    ),
    (
        "D58",
        *("controls", "Controls.meet_fault"),
        "self.written, self.survivors = fault.written, fault.survivors",
        "self.written = fault.written",
    ),
    (
        "D59",
        *("survivors", "Hashed._tears"),
        *("mixed(key ^ mixed(number)) % BLOCKS_TORN == 0", "False"),
    ),
    (
        "D60",
        *("crash_state", "without_cuts"),
        *("inode.pending, inode.cuts, frozenset()", "inode.pending, [], frozenset()"),
    ),
)

DISK = mutants_of("disk", "crashmq.harness.disk", _ROWS)
