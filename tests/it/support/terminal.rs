//! A terminal with a person at it: a tmux server of the test's own, which emulates a real one and
//! says how its screen stands.

use super::World;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long anything is waited for on the screen.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Terminal<'a> {
    world: &'a World,
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    /// An interactive bash in the repository; its prompt is `$ `.
    pub(crate) fn open(world: &'a World) -> Self {
        let socket = world.root.join("tty");
        let terminal = Self { world, socket };
        let folder = world.repo.to_str().unwrap();
        let began = terminal
            .tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", "-c", folder])
            .arg("env PS1='$ ' bash --norc --noprofile -i")
            .status()
            .expect("tmux runs");
        assert!(began.success(), "tmux has no terminal for us");
        terminal.until("$");
        terminal
    }

    fn tmux(&self, words: &[&str]) -> Command {
        let mut command = self.world.command("tmux");
        command.env("TERM", "xterm-256color").env("SHELL", "/bin/sh");
        command.arg("-S").arg(&self.socket).args(words);
        command
    }

    /// Types text, and nothing after it.
    pub(crate) fn types(&self, text: &str) {
        assert!(self.tmux(&["send-keys", "-l", text]).status().unwrap().success());
    }

    /// Presses keys, by tmux's names.
    pub(crate) fn press(&self, keys: &[&str]) {
        assert!(self.tmux(&["send-keys"]).args(keys).status().unwrap().success());
    }

    /// Types a line. Full-screen programs take text and Enter in one go for a paste.
    pub(crate) fn enters(&self, text: &str) {
        self.types(text);
        std::thread::sleep(Duration::from_millis(300));
        self.press(&["Enter"]);
    }

    pub(crate) fn screen(&self) -> String {
        let output = self.tmux(&["capture-pane", "-p", "-J"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until the words stand on the screen.
    #[track_caller]
    pub(crate) fn until(&self, words: &str) {
        self.wait(&format!("'{words}' is on the screen"), || self.screen().contains(words));
    }

    /// Answers every question that a program asks with its first answer, until the words are there.
    #[track_caller]
    pub(crate) fn agrees_until(&self, words: &str) {
        self.wait(&format!("'{words}' is on the screen"), || {
            let screen = self.screen();
            if ["❯ 1. Yes", "› 1. Yes"].iter().any(|question| screen.contains(question)) {
                self.press(&["Enter"]);
                std::thread::sleep(Duration::from_millis(400));
            }
            screen.contains(words)
        });
    }

    #[track_caller]
    pub(crate) fn wait(&self, what: &str, there: impl Fn() -> bool) {
        let began = Instant::now();
        while !there() {
            assert!(
                began.elapsed() < PATIENCE,
                "waited in vain until {what}; the screen:\n{}",
                self.screen()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn resize(&self, columns: u32, rows: u32) {
        let (x, y) = (columns.to_string(), rows.to_string());
        assert!(self.tmux(&["resize-window", "-x", &x, "-y", &y]).status().unwrap().success());
    }

    /// What is switched on: alternate screen, cursor, mouse, focus…
    pub(crate) fn modes(&self) -> String {
        let ask = "alt=#{alternate_on} cursor=#{cursor_flag} mouse=#{mouse_any_flag} \
                   keypad=#{keypad_flag}#{keypad_cursor_flag} wrap=#{wrap_flag}";
        let output = self.tmux(&["display-message", "-p", ask]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// How its line is set, as stty says it.
    pub(crate) fn settings(&self) -> String {
        let output = self.tmux(&["display-message", "-p", "#{pane_tty}"]).output().unwrap();
        let line = String::from_utf8(output.stdout).unwrap();
        self.world.run("stty", &["-a", "-F", line.trim()]).stdout
    }

    /// The line hangs up.
    pub(crate) fn hangs_up(&self) {
        _ = self.tmux(&["kill-server"]).status();
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the screen at the end:\n{}", self.screen());
        }
        self.hangs_up();
    }
}
