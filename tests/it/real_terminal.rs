//! Relays between the real Claude Code and the real Codex in a person's terminal. Like the headless
//! ones they run only inside `tests/isolate.sh`.

mod real {
    use crate::it::support::real::{Cast, Stage, plan, say, shell, then, write};
    use crate::it::support::terminal::Terminal;
    use serde_json::json;
    use std::fs;

    const NEXT: &str = "takes over in this terminal";

    /// What is asked before the first prompt has been answered long ago, and the folder is trusted.
    fn settle(stage: &Stage) {
        settle_claude(stage, true);
        let path = stage.world.home.join(".codex/config.toml");
        let mut config = fs::read_to_string(&path).unwrap();
        let repo = stage.world.repo.display();
        config.push_str(&format!(
            "[projects.\"{repo}\"]\ntrust_level = \"trusted\"\n\
             [notice.model_migrations]\n\"gpt-5.5\" = \"gpt-6-sol\"\n\
             [tui]\nscreen_reader_detection_done = true\n"
        ));
        fs::write(&path, config).unwrap();
    }

    fn settle_claude(stage: &Stage, trusted: bool) {
        let repo = stage.world.repo.to_str().unwrap();
        let known = json!({
            "hasCompletedOnboarding": true, "lastOnboardingVersion": "2.1.332", "theme": "dark",
            "projects": {repo: {"hasTrustDialogAccepted": trusted}},
        });
        fs::write(stage.world.home.join(".claude.json"), known.to_string()).unwrap();
    }

    /// Runs a command line between two looks at the terminal's settings.
    fn runs(terminal: &Terminal<'_>, line: &str) {
        terminal.enters(&format!("stty -a >before; {line}; echo code $?; stty -a >after"));
    }

    #[track_caller]
    fn left_as_it_was(stage: &Stage, terminal: &Terminal<'_>) {
        let text = |name: &str| fs::read_to_string(stage.world.repo.join(name)).unwrap_or_default();
        terminal.wait("the settings are looked at again", || !text("after").is_empty());
        assert_eq!(text("before"), text("after"), "the terminal's settings were changed");
        assert_eq!(terminal.modes(), "alt=0 cursor=1 mouse=0 keypad=00 wrap=1");
        for name in ["before", "after"] {
            fs::remove_file(stage.world.repo.join(name)).unwrap();
        }
        stage.nobody_is_left();
    }

    fn first_of_claude() -> serde_json::Value {
        json!([
            plan(&["> Write done.txt", "  Write last.txt"]),
            write("done.txt", "done\n"),
            say("The first turn is over."),
            then(shell("echo two >two.txt"), json!({"limit": true, "resets_in": 4})),
            say("never said"),
        ])
    }

    #[test]
    #[ignore = "needs tests/isolate.sh"]
    fn claude_codex_claude_in_one_terminal() {
        let stage = Stage::new(&Cast {
            agents: &["claude", "codex"],
            claude: json!({
                "when": [{"has": "take over a task from codex", "steps": [say("Claude is back."), say("And goes on.")]}],
                "steps": first_of_claude(),
            }),
            codex: json!([
                shell("cat .relay/envelope.md done.txt two.txt"),
                say("Codex has read it."),
                then(write("three.txt", "three\n"), json!({"limit": true})),
                say("never said"),
            ]),
            third: None,
        });
        settle(&stage);
        let terminal = Terminal::open(&stage.world);
        runs(&terminal, "git relay start 'Write done.txt and last.txt'");
        terminal.agrees_until("The first turn is over.");
        terminal.enters("please go on");
        terminal.agrees_until(NEXT);
        stage.claude.set(&json!({"limit": false}));
        terminal.press(&["Enter"]);
        terminal.until("Codex has read it.");
        terminal.enters("now the third file");
        terminal.agrees_until("claude takes over");
        terminal.press(&["Enter"]);
        terminal.until("Claude is back.");
        terminal.enters("/exit");
        terminal.until("was left");
        terminal.press(&["Enter"]);
        terminal.until("code");
        left_as_it_was(&stage, &terminal);
        let starts = stage.starts();
        let starts: Vec<&str> = starts.iter().map(|(agent, _)| agent.as_str()).collect();
        assert_eq!(starts, ["claude", "codex", "claude"]);
        for (leg, ends) in stage.after("leg-ended").iter().zip(["limit", "limit"]) {
            assert_eq!(leg["legEnd"]["outcome"], ends, "{}", leg["legEnd"]);
        }
        // What the first two did, and what the person typed, came with the contracts.
        let back = stage.claude.last();
        for words in ["done.txt", "three.txt", "please go on", "now the third file"] {
            assert!(back.contains(words), "'{words}' is not in:\n{back}");
        }
        stage.world.relay(&["verify"]).exits(0);
    }
}
