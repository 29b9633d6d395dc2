//! Relays between the real Claude Code and the real Codex in a person's terminal. Like the headless
//! ones they run only inside `tests/isolate.sh`.

pub(crate) mod real {
    use crate::it::support::real::{Cast, RELAY, Stage, plan, say, shell, then, write};
    use crate::it::support::terminal::Terminal;
    use serde_json::json;
    use std::fs;

    const NEXT: &str = "takes over in this terminal";

    /// What is asked before the first prompt has been answered long ago, and the folder is trusted.
    pub(crate) fn settle(stage: &Stage) {
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

    /// Has the agent left in its own way: told so in words, or by Ctrl-C. Told again only where it
    /// was still busy and did not hear: what comes too late would reach the driver or the shell.
    #[track_caller]
    fn leaves(terminal: &Terminal<'_>, tell: impl Fn()) {
        let gone = || {
            let screen = terminal.screen();
            ["was left", "code 0", "code 1"].iter().any(|word| screen.contains(word))
        };
        terminal.wait("the agent is left", || {
            tell();
            let told = std::time::Instant::now();
            while !gone() && told.elapsed().as_secs() < 8 {
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            gone()
        });
    }

    fn claude_leaves(terminal: &Terminal<'_>) {
        leaves(terminal, || terminal.enters("/exit"));
    }

    fn codex_leaves(terminal: &Terminal<'_>) {
        leaves(terminal, || terminal.press(&["C-c"]));
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
        claude_leaves(&terminal);
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

    /// A repository with both agents settled, Claude first, and what they do.
    fn stage(claude: serde_json::Value, codex: serde_json::Value) -> Stage {
        let stage = Stage::new(&Cast { agents: &["claude", "codex"], claude, codex, third: None });
        settle(&stage);
        stage
    }

    #[test]
    #[ignore = "needs tests/isolate.sh"]
    fn a_hand_over_is_asked_for_in_another_terminal_and_by_the_agent_itself() {
        let stage = stage(
            json!([
                say("Claude waits for you."),
                shell(&format!("{RELAY} handoff --reason 'it is your turn'; echo asked: $?")),
                shell("sleep 30"),
                say("never said"),
            ]),
            json!([say("Codex waits for you."), say("never said")]),
        );
        let terminal = Terminal::open(&stage.world);
        runs(&terminal, "git relay start 'A task'");
        terminal.until("Claude waits for you.");
        terminal.enters("give it away");
        terminal.agrees_until("claude was to hand over: it is your turn");
        terminal.press(&["Enter"]);
        terminal.until("Codex waits for you.");
        let asked = stage.drive(&["handoff", "--to", "claude", "--reason", "from elsewhere"]);
        terminal.until("codex was to hand over: from elsewhere");
        terminal.press(&["Enter"]);
        terminal.until("Claude waits for you.");
        drop(asked);
        claude_leaves(&terminal);
        terminal.enters("l");
        left_as_it_was(&stage, &terminal);
        let ends = stage.after("snapshotted");
        assert_eq!(ends.len(), 2);
        for end in ends {
            assert_eq!(end["legEnd"]["outcome"], "paused", "{}", end["legEnd"]);
        }
    }

    #[test]
    #[ignore = "needs tests/isolate.sh"]
    fn over_the_threshold_the_status_line_tells_and_claude_pauses() {
        let idle = (0..20).map(|_| shell("sleep 1"));
        let mut steps = vec![then(shell("echo begun"), json!({"used": 0.93}))];
        steps.extend(idle);
        let stage = stage(json!(steps), json!([say("Codex waits for you.")]));
        let own = json!({
            "model": "claude-sonnet-4-5", "permissions": {"allow": ["Bash"]},
            "statusLine": {"type": "command", "command": "cat >/dev/null; echo MY-OWN-LINE"},
        });
        fs::write(stage.world.home.join(".claude/settings.json"), own.to_string()).unwrap();
        let terminal = Terminal::open(&stage.world);
        runs(&terminal, "git relay start 'A task'");
        terminal.until("MY-OWN-LINE");
        terminal.until("claude is close to its limit: 93.0 % of the 5-hour window");
        assert_eq!(stage.claude.refused(), 0);
        terminal.press(&["Enter"]);
        terminal.until("Codex waits for you.");
        codex_leaves(&terminal);
        terminal.enters("l");
        left_as_it_was(&stage, &terminal);
    }

    #[test]
    #[ignore = "needs tests/isolate.sh"]
    fn a_trust_dialog_and_a_log_in_are_shown_and_nobody_is_killed() {
        let mut stage = stage(
            json!([then(say("Claude waits for you."), json!({"limit": true})), say("never said")]),
            json!([say("never said")]),
        );
        settle_claude(&stage, false);
        stage.world.variables.remove(std::ffi::OsStr::new("MOCK_API_KEY"));
        let config = stage.world.home.join(".config/git-relay/config.toml");
        let impatient = format!(
            "start_deadline_s = 1\nreceipt_deadline_s = 1\n{}",
            fs::read_to_string(&config).unwrap()
        );
        fs::write(&config, impatient).unwrap();
        let terminal = Terminal::open(&stage.world);
        runs(&terminal, "git relay start 'A task'");
        terminal.until("Is this a project you created or one you trust?");
        std::thread::sleep(std::time::Duration::from_secs(4));
        let id = stage.world.session();
        stage.world.relay(&["status", &id]).exits(0).says("for you, in its terminal");
        terminal.until("Yes, I trust this folder");
        terminal.press(&["Down"]);
        terminal.press(&["Enter"]);
        terminal.until("Claude waits for you.");
        // At its limit the only one left is one that is not logged in: the person can do that here.
        terminal.enters("on with it");
        terminal.until("codex takes over");
        terminal.press(&["Enter"]);
        terminal.until("Missing environment variable");
        codex_leaves(&terminal);
        terminal.enters("l");
        left_as_it_was(&stage, &terminal);
    }

    #[test]
    #[ignore = "needs tests/isolate.sh"]
    fn a_killed_agent_and_a_killed_driver_leave_the_terminal_whole() {
        let stage = stage(
            json!([say("Claude waits for you."), shell("echo two >two.txt"), say("never said")]),
            json!([say("Codex waits for you."), say("I am.")]),
        );
        let terminal = Terminal::open(&stage.world);
        runs(&terminal, "git relay start 'A task'");
        terminal.until("Claude waits for you.");
        terminal.enters("write the other file");
        terminal.until("❯ 1. Yes");
        terminal.wait("its receipt is in", || stage.state()["state"] == "RUNNING");
        let agent = stage.state()["dispatch"]["process"]["pid"].to_string();
        stage.world.run("kill", &["-9", &agent]).exits(0);
        terminal.until("claude ended badly");
        terminal.press(&["Enter"]);
        terminal.until("Codex waits for you.");
        // Ctrl-Z and back, with a real full-screen program.
        terminal.press(&["C-z"]);
        terminal.until("Stopped");
        terminal.enters("fg");
        terminal.enters("are you there");
        terminal.wait("Codex asked its model again", || stage.codex.turns().len() == 2);
        let lock = stage.world.repo.join(format!(".git/relay/{}.lock", stage.world.session()));
        let driver = git_relay::host::lock::holder(&lock).expect("a driver").to_string();
        stage.world.run("kill", &["-9", &driver]).exits(0);
        terminal.until("died of signal 9");
        terminal.enters("clear; git relay resume");
        // Codex lives on and has the terminal again: what is pressed reaches it, not the driver.
        terminal.wait("its driver is back", || git_relay::host::lock::is_held(&lock));
        std::thread::sleep(std::time::Duration::from_secs(2));
        codex_leaves(&terminal);
        terminal.enters("l");
        left_as_it_was(&stage, &terminal);
    }
}
