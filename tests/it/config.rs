//! Malformed configuration is named with its file, line and column, and a suggestion that makes
//! sense; nothing is done with it.

use super::support::{World, scripted};

/// What is wrong, in the shared file where the second says so, and all that is said of it.
const WRONG: [(&str, bool, &[&str]); 17] = [
    ("\nthreshold = 90\n", false, &["line 2, column 13", "a share from 0.01 to 1", "'90'"]),
    ("threshold = 90\n", true, &["line 1, column 13", ".relay.toml'", "a share from 0.01 to 1"]),
    ("threshold = \"x\"\n", false, &["line 1, column 13", "invalid type"]),
    (
        "agents = [\"ok\", \"No Agent\"]\n",
        false,
        &["line 1, column", "'No Agent' is not an agent's name"],
    ),
    ("\n\nagents = [\"../x\"]\n", true, &["line 3, column", "'../x' is not an agent's name"]),
    ("pause_deadline_s = 9999999\n", false, &["line 1, column 20", "longer than a week"]),
    ("wip_interval_s = -1\n", false, &["line 1, column 18"]),
    (
        "branch_prefix = \"-x\"\n",
        false,
        &["line 1, column 17", "cannot begin the names of branches"],
    ),
    ("secrets = \"refused\"\n", false, &["line 1, column 11", "did you mean 'refuse'?"]),
    ("treshold = 0.9\n", false, &["line 1, column 1", "did you mean 'threshold'?"]),
    ("colour = 1\n", false, &["line 1, column 1", "unknown field `colour`"]),
    ("[worktree]\ndir = \"/tmp\"\n", true, &["line 2, column 7", "a folder of the repository"]),
    ("[agent.\"No Agent\"]\nall = true\n", false, &["'No Agent' is not an agent's name"]),
    ("[agent.x]\nlimit = \"(\"\n", false, &["line 2, column 9", "'(' is no regular expression"]),
    ("[agent.x]\nal = true\n", false, &["line 2, column 1", "did you mean 'all'?"]),
    ("threshold = \n", false, &["line 1, column"]),
    ("trust_folder = true\n", true, &["line 1, column 1", "may stand only in your own file"]),
];

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (text, is_shared, said) in WRONG {
        let world = World::new();
        world.relay(&["init"]).exits(0);
        let refs = world.git(&["for-each-ref"]);
        match is_shared {
            true => world.write(".relay.toml", text),
            false => world.configure(text),
        }
        for words in [&["list"][..], &["run", "x"], &["init", "--agents", "claude"]] {
            let mut did = world.relay(words);
            assert_eq!(did.code, Some(2), "{text}: {}", did.stderr);
            for words in said {
                did = did.says(words);
            }
            did = did.says("hint: ");
            let suggests = did.stderr.contains("did you mean");
            assert_eq!(suggests, said.iter().any(|words| words.contains("did you mean")), "{text}");
        }
        assert_eq!(world.git(&["for-each-ref"]), refs);
    }
    // What only the user's own file may hold, in the clone's.
    let world = World::new();
    world.relay(&["init", "--agents", "claude"]).exits(0);
    world.write(".git/relay/config.toml", "agents = []\n\n[agent.x]\nall = true\n");
    let did = world.relay(&["list"]).exits(2).says("relay/config.toml', line 3, column 2");
    did.says("hint: move them to ");
}

#[test]
fn a_variable_that_is_no_setting_is_named() {
    let mut world = World::new();
    world.relay(&["init"]).exits(0);
    for (name, value, said) in [
        ("GIT_RELAY_TRESHOLD", "0.5", "did you mean 'GIT_RELAY_THRESHOLD'?"),
        ("GIT_RELAY_COLOUR", "1", "no setting is called 'GIT_RELAY_COLOUR'"),
        ("GIT_RELAY_THRESHOLD", "90", "GIT_RELAY_THRESHOLD: a threshold is a share"),
        ("GIT_RELAY_THRESHOLD", "x", "GIT_RELAY_THRESHOLD: 'x' is no number"),
        ("GIT_RELAY_AGENTS", "A B", "GIT_RELAY_AGENTS: 'A B' is not an agent's name"),
    ] {
        world.set(name, value);
        world.relay(&["list"]).exits(2).says(said).says("hint: ");
        world.variables.remove(std::ffi::OsStr::new(name));
    }
    // Ours, and those of tests.
    for name in ["GIT_RELAY_SESSION", "GIT_RELAY_PORT_BASE", "GIT_RELAY_SIGNS", "GIT_RELAY_TEST_X"]
    {
        world.set(name, "1");
    }
    world.relay(&["list"]).exits(0);
}

#[test]
fn agents_that_the_shared_file_leaves_out_are_named_when_none_is_left() {
    let world = World::new();
    let agent =
        world.program("agent", "cat >/dev/null; echo start; echo 'step one'; echo 'done it'\n");
    world.configure(&scripted(&[("mine", &agent), ("other", &agent)]));
    world.relay(&["init"]).exits(0);
    world.write(".relay.toml", "agents = [\"theirs\"]\n");
    let did = world.relay(&["run", "x"]).exits(2);
    did.says("leaves none of your agents (mine,other)").says("say --agents mine,other here");
    assert_eq!(world.git(&["for-each-ref", "refs/relay/sessions"]), "");
    world.write(".relay.toml", "agents = [\"other\"]\n");
    world.relay(&["run", "x"]).exits(0).says("other took over");
}
