//! Texts about one worktree, for a reader who works in another one: what lies inside the first is
//! named from its root.

use super::transcript::{Effect, Transcript};

/// A worktree's root, in every spelling of it that is known: absolute, without a slash at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    roots: Vec<String>,
}

impl Moved {
    pub fn from(roots: impl IntoIterator<Item = String>) -> Self {
        let mut roots: Vec<String> = roots
            .into_iter()
            .map(|root| root.trim_end_matches('/').to_owned())
            .filter(|root| root.len() > 1)
            .collect();
        // A root inside another one first.
        roots.sort_by_key(|root| std::cmp::Reverse(root.len()));
        roots.dedup();
        Self { roots }
    }

    /// `text` with every path inside the root relative to it; the root itself is `.`.
    pub fn text(&self, text: &str) -> String {
        self.roots.iter().fold(text.to_owned(), |text, root| relative(&text, root))
    }

    /// The same for everything an agent left that a contract may quote.
    pub fn transcript(&self, transcript: &mut Transcript) {
        let Transcript {
            agent_session: _,
            cwd: _,
            model: _,
            prompts,
            plan,
            files,
            commands,
            open_calls,
            messages,
            summary,
            reports,
            decisions,
            refusals,
            skills: _,
            readings: _,
            ending: _,
            warnings: _,
            tasks,
            scratch,
        } = transcript;
        let there = |text: &mut String| *text = self.text(text);
        prompts.iter_mut().for_each(|prompt| there(&mut prompt.text));
        plan.iter_mut().chain(tasks.iter_mut().map(|task| &mut task.1)).for_each(|item| {
            there(&mut item.text);
        });
        files.iter_mut().for_each(|file| there(&mut file.path));
        for run in commands {
            there(&mut run.command);
            there(&mut run.tail);
        }
        open_calls.values_mut().for_each(|call| there(&mut call.summary));
        for effect in scratch.effects.values_mut() {
            if let Effect::Files(files) = effect {
                files.iter_mut().for_each(|file| there(&mut file.path));
            }
        }
        messages.iter_mut().chain(summary.as_mut()).chain(reports).for_each(there);
        decisions.iter_mut().chain(refusals).for_each(there);
    }
}

/// Whether `c` can stand in a path beside the part that is looked at.
fn in_a_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '~' | '+' | '@')
}

fn relative(text: &str, root: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(root) {
        let (before, found) = rest.split_at(at);
        let after = &found[root.len()..];
        out.push_str(before);
        let goes_on_before =
            out.chars().next_back().is_some_and(|c| in_a_name(c) || matches!(c, '/' | '\\'));
        let next = after.chars().next();
        // A full stop ends a sentence, unless it begins a name.
        let ends = match next {
            None => true,
            Some('.') => after.chars().nth(1).is_none_or(char::is_whitespace),
            Some(c) => !in_a_name(c),
        };
        if goes_on_before || !ends {
            out.push_str(root);
            rest = after;
            continue;
        }
        let inside = after.strip_prefix('/').map(|rest| rest.trim_start_matches('/'));
        match inside {
            Some(inside) if inside.starts_with(|c: char| in_a_name(c) || "([{$*'".contains(c)) => {
                rest = inside;
            }
            Some(inside) => {
                out.push('.');
                rest = inside;
            }
            None => {
                out.push('.');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_inside_become_relative_and_others_stay() {
        let moved = Moved::from(["/srv/my repo/".to_owned(), "/h/u/repo".to_owned()]);
        for (text, wanted) in [
            ("/h/u/repo/src/a.rs", "src/a.rs"),
            ("cd /h/u/repo && cat \"/h/u/repo/x y\"", "cd . && cat \"x y\""),
            ("--dir=/h/u/repo:/h/u/repo/bin", "--dir=.:bin"),
            (
                "/h/u/repo2/x /h/u/repo-old /h/u/repo.git",
                "/h/u/repo2/x /h/u/repo-old /h/u/repo.git",
            ),
            ("/mnt/h/u/repo/x ~/h/u/repo", "/mnt/h/u/repo/x ~/h/u/repo"),
            ("it is in /h/u/repo. Look", "it is in .. Look"),
            ("ls /h/u/repo/ now", "ls . now"),
            ("cat '/srv/my repo/a'", "cat 'a'"),
            ("/h/u/repo/.env /h/u/repo/*.md", ".env *.md"),
            ("file:///h/u/repo/x", "file:///h/u/repo/x"),
            ("日本/h/u/repo/é", "日本/h/u/repo/é"),
            ("/h/u/repo/é", "é"),
        ] {
            assert_eq!(moved.text(text), wanted, "{text}");
        }
        assert_eq!(Moved::from(["/".to_owned(), String::new()]), Moved::default());
    }
}
