//! How much of each section an envelope shows, and what it gives up first.

/// Entries of a list, and bytes of each.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    pub(super) items: usize,
    pub(super) bytes: usize,
}

const fn limit(items: usize, bytes: usize) -> Limit {
    Limit { items, bytes }
}

#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) task_bytes: usize,
    pub(super) later: Limit,
    pub(super) constraints: Limit,
    pub(super) do_not_redo: Limit,
    pub(super) decisions: Limit,
    pub(super) done: Limit,
    pub(super) plan: Limit,
    pub(super) tasks: Limit,
    pub(super) next_bytes: usize,
    pub(super) acceptance: Limit,
    pub(super) files: Limit,
    /// Code in flight is shown as a diff up to this, else as pieces.
    pub(super) diff_bytes: usize,
    pub(super) pieces: Limit,
    pub(super) commands: Limit,
    pub(super) tail_bytes: usize,
    pub(super) open_calls: Limit,
    pub(super) messages: Limit,
    pub(super) not_captured: Limit,
    pub(super) usage: usize,
    pub(super) reason_bytes: usize,
}

/// Everything the core holds, and of the attachments what there is room for.
pub(super) const ROOMY: Limits = Limits {
    task_bytes: 12_000,
    later: limit(30, 2000),
    constraints: limit(60, 500),
    do_not_redo: limit(80, 500),
    decisions: limit(60, 500),
    done: limit(60, 300),
    plan: limit(80, 300),
    tasks: limit(80, 300),
    next_bytes: 1000,
    acceptance: limit(40, 400),
    files: limit(200, 200),
    diff_bytes: 8000,
    pieces: limit(8, 600),
    commands: limit(12, 400),
    tail_bytes: 600,
    open_calls: limit(10, 200),
    messages: limit(4, 2000),
    not_captured: limit(30, 200),
    usage: 6,
    reason_bytes: 500,
};

/// From the least worth to the most; the last step fits the least budget, whatever the contract.
pub(super) const STEPS: &[fn(&mut Limits)] = &[
    |l| (l.diff_bytes, l.messages) = (4000, limit(3, 1000)),
    |l| (l.files.items, l.done.items) = (100, 40),
    |l| (l.diff_bytes, l.tail_bytes) = (2000, 300),
    |l| (l.files.items, l.not_captured.items) = (50, 16),
    |l| (l.messages, l.later, l.task_bytes) = (limit(2, 500), limit(12, 1000), 8000),
    |l| (l.commands, l.diff_bytes, l.pieces) = (limit(8, 250), 0, limit(6, 350)),
    |l| (l.files.items, l.done) = (25, limit(20, 200)),
    |l| (l.tail_bytes, l.messages) = (120, limit(1, 400)),
    |l| (l.pieces, l.usage, l.not_captured) = (limit(3, 250), 2, limit(8, 140)),
    |l| (l.plan, l.acceptance) = (limit(40, 200), limit(20, 250)),
    |l| (l.decisions, l.constraints) = (limit(30, 300), limit(30, 300)),
    |l| (l.commands, l.tail_bytes, l.files.items) = (limit(5, 160), 0, 12),
    |l| (l.task_bytes, l.later) = (4000, limit(8, 500)),
    |l| (l.do_not_redo, l.tasks) = (limit(40, 300), limit(40, 200)),
    |l| (l.pieces.items, l.messages.items, l.done) = (0, 0, limit(8, 120)),
    |l| (l.plan, l.acceptance) = (limit(16, 160), limit(8, 200)),
    |l| (l.decisions, l.constraints) = (limit(12, 200), limit(12, 200)),
    |l| (l.commands.items, l.files.items, l.usage, l.reason_bytes) = (0, 6, 0, 160),
    |l| (l.task_bytes, l.later) = (2000, limit(4, 300)),
    |l| (l.do_not_redo, l.tasks) = (limit(20, 200), limit(20, 150)),
    |l| (l.plan.items, l.done.items, l.not_captured) = (0, 0, limit(3, 100)),
    |l| (l.open_calls, l.files.items, l.acceptance) = (limit(4, 100), 0, limit(4, 120)),
    |l| (l.decisions, l.constraints) = (limit(5, 140), limit(5, 140)),
    |l| (l.task_bytes, l.later, l.next_bytes) = (1000, limit(2, 200), 400),
    |l| (l.do_not_redo, l.tasks) = (limit(8, 160), limit(8, 120)),
    |l| (l.not_captured.items, l.open_calls.items, l.acceptance.items) = (0, 0, 0),
    |l| (l.decisions.items, l.constraints.items, l.later.items, l.reason_bytes) = (2, 2, 1, 80),
];
