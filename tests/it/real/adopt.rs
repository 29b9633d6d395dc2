//! What a real agent began without us, adopted at its limit, and continued on the other one.

use super::{Cast, DO_NOT_REDO, Stage, TASK, plan, say, second_half, shell, then, write};
use serde_json::{Value, json};

/// Half the task, as an agent does it that knows nothing of us.
fn first_half() -> Value {
    json!([
        plan(&["> Write done.txt", "  Finish README.md", "  Write last.txt"]),
        {"say": format!("I begin. Mind that {DO_NOT_REDO}."), "write": {"path": "done.txt", "content": "done\n"}},
        shell("git add done.txt && git commit -q -m 'Add done.txt'"),
        plan(&["x Write done.txt", "> Finish README.md", "  Write last.txt"]),
        shell("test -e nothing.txt"),
        shell("echo half >>README.md; echo staged >staged.txt; git add staged.txt"),
        then(write("untracked.txt", "untracked\n"), json!({"limit": true})),
        say("never said"),
    ])
}

#[test]
#[ignore = "needs tests/isolate.sh"]
fn what_one_began_without_us_is_adopted_and_continued_on_the_other() {
    for (giver, receiver) in [("claude", "codex"), ("codex", "claude")] {
        let jobs = (first_half(), json!(second_half()));
        let (claude, codex) = if giver == "claude" { jobs } else { (jobs.1, jobs.0) };
        let stage = Stage::new(&Cast { agents: &[giver, receiver], claude, codex, third: None });
        stage.without_us(giver, TASK).wait().unwrap();
        let status = stage.world.git(&["status", "--porcelain"]);
        assert!(status.contains(" M README.md") && status.contains("?? untracked.txt"), "{status}");
        let before = stage.world.users_things();
        stage
            .relay(&["adopt", "--headless"])
            .exits(0)
            .says(&format!("{receiver} took over (leg 2)"));
        assert_eq!(stage.world.users_things(), before, "the place was not only read");
        let taken = if giver == "claude" { stage.codex.turns() } else { stage.claude.turns() };
        let (_, tasks) = taken[0].split_once("## Open tasks").expect("open tasks");
        assert!(
            tasks.contains("- Finish README.md") && tasks.contains("- Write last.txt"),
            "{tasks}"
        );
        for text in [TASK, DO_NOT_REDO, "test -e nothing.txt", "untracked.txt", "+half"] {
            assert!(taken[0].contains(text), "'{text}' is not in the first request of {receiver}");
        }
        for text in ["half\nstaged\nuntracked\ndone", "status: []"] {
            assert!(taken[1].contains(text), "{receiver} did not see '{text}'");
        }
        let session = stage.world.session();
        let contract =
            stage.world.relay(&["show", "--json", &session, "--leg", "1"]).exits(0).json();
        assert_eq!(contract["from"]["outcome"], "limit", "{contract}");
        assert_eq!(contract["from"]["agent"], giver);
        let repo = stage.world.repo.to_str().unwrap();
        assert!(!contract.to_string().contains(repo), "an absolute path in {contract}");
        stage.world.relay(&["verify"]).exits(0);
        stage.world.relay(&["finish", "--include-snapshot"]).exits(0);
        assert_eq!(stage.world.git(&["show", "HEAD:last.txt"]), "last");
        assert_eq!(stage.world.git(&["show", "HEAD:untracked.txt"]), "untracked");
        assert_eq!(stage.world.git(&["status", "--porcelain"]), "");
        stage.nobody_is_left();
    }
}
