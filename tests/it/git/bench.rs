//! The snapshot beside `git add -A && git write-tree` with a private index, in one run.

use super::*;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
const FILES: usize = 20_000;
const DIRTY: usize = 2_000;

#[test]
#[ignore = "measures; run in release with --ignored --nocapture"]
#[expect(clippy::print_stderr, reason = "figures are for people")]
fn bench() {
    let place = |n: usize| format!("d{}/e{}/f{n}.txt", n % 40, n % 400);
    let sandbox = Sandbox::with(&[], |main| {
        for n in 0..FILES {
            write(&main.join(place(n)), format!("file {n}\n").repeat(40));
        }
    });
    // Half of them changed, half of them new, with content never seen before.
    let dirty = |round: usize| {
        for n in 0..DIRTY / 2 {
            write(&sandbox.work.join(place(n)), format!("changed {round} {n}\n").repeat(40));
            let new = sandbox.work.join(format!("new{round}/n{n}.txt"));
            write(&new, format!("new {round} {n}\n").repeat(40));
        }
        assert!(Command::new("sync").status().unwrap().success());
    };
    let mut best: Vec<(&str, Spent)> = Vec::new();
    let mut note = |what, since: &Spent| {
        let spent = since.until_now();
        match best.iter_mut().find(|(name, _)| *name == what) {
            Some((_, least)) => least.take_least(&spent),
            None => best.push((what, spent)),
        }
    };
    for round in 0..ROUNDS {
        for (offset, what, settings) in [
            (0, "git, not durable", &[][..]),
            (1, "git, durable", &["core.fsync=loose-object", "core.fsyncMethod=batch"][..]),
        ] {
            dirty(round * 10 + offset);
            let start = Spent::so_far();
            sandbox.tree_by_git_with(settings);
            note(what, &start);
        }
        for (offset, what, durability) in
            [(2, "ours, not durable", Durability::None), (3, "ours, durable", Durability::Full)]
        {
            dirty(round * 10 + offset);
            let mut repo = open_work(sandbox.repo.common_dir(), &sandbox.work).unwrap();
            repo.set_durability(durability);
            let start = Spent::so_far();
            let taken = repo.take_snapshot(&Caps::default(), "m", TIME, None).unwrap();
            repo.durable().unwrap();
            note(what, &start);
            let start = Spent::so_far();
            repo.install_index(&taken.tree).unwrap();
            repo.move_branch("refs/heads/relay/s1", &taken.parent, &taken.commit).unwrap();
            note("then index and branch", &start);
            let start = Spent::so_far();
            assert_eq!(sandbox.status(), "");
            note("then git status", &start);
        }
    }
    for (what, least) in best {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        eprintln!(
            "{what:24} {:7.1} ms, of processor time {:7.1} ms",
            ms(least.clock),
            ms(least.cpu)
        );
    }
}

/// Time by the clock, and processor time of this process and of its children that ended.
struct Spent {
    began: Instant,
    clock: Duration,
    cpu: Duration,
}

impl Spent {
    fn so_far() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let fields = stat.rsplit(')').next().unwrap().split_whitespace();
        // utime, stime, cutime, cstime, in hundredths of a second.
        let ticks: u64 = fields.skip(11).take(4).map(|field| field.parse::<u64>().unwrap()).sum();
        Self {
            began: Instant::now(),
            clock: Duration::ZERO,
            cpu: Duration::from_millis(ticks * 10),
        }
    }

    fn until_now(&self) -> Self {
        let now = Self::so_far();
        Self { began: now.began, clock: self.began.elapsed(), cpu: now.cpu - self.cpu }
    }

    fn take_least(&mut self, other: &Self) {
        self.clock = self.clock.min(other.clock);
        self.cpu = self.cpu.min(other.cpu);
    }
}
