//! How much of each list the core holds, and what it gives up first.

use crate::model::contract::FILES_IN_CORE_MOST;

/// Entries of a list, and bytes of each text in it as it stands in JSON.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    pub(super) items: usize,
    pub(super) bytes: usize,
}

pub(super) const fn bound(items: usize, bytes: usize) -> Bound {
    Bound { items, bytes }
}

/// How much of each list the core holds.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) prompt_bytes: usize,
    pub(super) goal_bytes: usize,
    pub(super) next_bytes: usize,
    pub(super) later: Bound,
    pub(super) plan: Bound,
    pub(super) tasks: Bound,
    pub(super) done: Bound,
    pub(super) do_not_redo: Bound,
    pub(super) decisions: Bound,
    pub(super) constraints: Bound,
    pub(super) acceptance: Bound,
    pub(super) files: Bound,
    pub(super) in_flight: Bound,
    pub(super) commands: Bound,
    pub(super) tail_bytes: usize,
    pub(super) messages: Bound,
    pub(super) open_calls: Bound,
    pub(super) not_captured: Bound,
    pub(super) staged: Bound,
    pub(super) skills: usize,
    pub(super) usage: usize,
}

/// What a core holds that has room to spare.
pub(super) const ROOMY: Bounds = Bounds {
    prompt_bytes: 5000,
    goal_bytes: 300,
    next_bytes: 1000,
    later: bound(12, 1000),
    plan: bound(40, 300),
    tasks: bound(40, 300),
    done: bound(30, 300),
    do_not_redo: bound(40, 500),
    decisions: bound(30, 500),
    constraints: bound(30, 500),
    acceptance: bound(20, 400),
    files: bound(FILES_IN_CORE_MOST, 200),
    in_flight: bound(8, 600),
    commands: bound(12, 400),
    tail_bytes: 600,
    messages: bound(3, 1500),
    open_calls: bound(10, 200),
    not_captured: bound(16, 200),
    staged: bound(40, 200),
    skills: 20,
    usage: 6,
};

/// From the least worth to the most. The last step alone leaves a core that always fits.
pub(super) const STEPS: &[fn(&mut Bounds)] = &[
    |b| b.messages = bound(3, 700),
    |b| b.files.items = 100,
    |b| b.tail_bytes = 250,
    |b| b.files.items = 50,
    |b| b.in_flight = bound(6, 350),
    |b| b.messages = bound(2, 400),
    |b| (b.staged.items, b.skills, b.commands) = (15, 10, bound(8, 250)),
    |b| b.files.items = 25,
    |b| b.tail_bytes = 100,
    |b| b.in_flight = bound(4, 200),
    |b| (b.done, b.messages) = (bound(15, 200), bound(1, 300)),
    |b| b.prompt_bytes = 3000,
    |b| (b.later, b.files.items) = (bound(8, 600), 12),
    |b| (b.commands, b.tail_bytes) = (bound(5, 160), 0),
    |b| (b.in_flight.items, b.messages.items) = (2, 0),
    |b| (b.plan, b.done) = (bound(25, 200), bound(8, 150)),
    |b| (b.staged.items, b.skills, b.files.items, b.in_flight.items) = (5, 5, 6, 0),
    |b| (b.acceptance, b.not_captured) = (bound(10, 250), bound(8, 120)),
    |b| (b.decisions, b.constraints) = (bound(16, 300), bound(16, 300)),
    |b| (b.prompt_bytes, b.later) = (1800, bound(5, 400)),
    |b| (b.do_not_redo, b.tasks, b.plan) = (bound(24, 300), bound(20, 200), bound(16, 160)),
    |b| (b.commands.items, b.open_calls, b.files.items) = (0, bound(5, 120), 0),
    |b| (b.decisions, b.constraints) = (bound(10, 200), bound(10, 200)),
    |b| (b.later, b.done, b.acceptance) = (bound(3, 250), bound(4, 120), bound(5, 160)),
    |b| (b.do_not_redo, b.tasks, b.plan) = (bound(14, 200), bound(12, 150), bound(8, 120)),
    |b| (b.decisions, b.constraints) = (bound(6, 160), bound(6, 160)),
    |b| (b.prompt_bytes, b.next_bytes, b.goal_bytes) = (900, 400, 200),
    |b| (b.staged.items, b.skills, b.plan.items, b.done.items) = (0, 0, 0, 0),
    |b| (b.not_captured, b.open_calls, b.usage) = (bound(3, 100), bound(2, 80), 1),
    |b| (b.decisions, b.constraints, b.acceptance) = (bound(3, 120), bound(3, 120), bound(2, 80)),
    |b| (b.do_not_redo, b.tasks, b.later) = (bound(8, 150), bound(8, 100), bound(2, 150)),
];
