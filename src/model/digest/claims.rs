//! Items of a plan that are marked done although no change of theirs is to be seen: the plan says
//! one thing and git another, and the next agent is told both.
//!
//! Only an item that says a file is written or changed, and names it, can be held against git.
//! "Read src/a.rs" leaves no trace, and is believed.

use crate::model::contract::FileEntry;
use crate::model::transcript::{FileTouch, PlanItem, PlanStatus};
use std::collections::BTreeSet;

/// The first word of an item that changes what it names.
const VERBS: &[&str] = &[
    "add",
    "adapt",
    "adjust",
    "change",
    "convert",
    "correct",
    "create",
    "delete",
    "edit",
    "extend",
    "finish",
    "fix",
    "implement",
    "migrate",
    "modify",
    "move",
    "patch",
    "port",
    "refactor",
    "remove",
    "rename",
    "replace",
    "rewrite",
    "update",
    "write",
];

/// The files that a finished item says it changed, as it names them; none where nothing can be
/// said.
pub fn changed_by(item: &PlanItem) -> Vec<&str> {
    let mut words = item.text.split_whitespace();
    let verb = words.next().unwrap_or_default().to_lowercase();
    if item.status != PlanStatus::Completed || !VERBS.contains(&verb.as_str()) {
        return Vec::new();
    }
    words.filter_map(path).collect()
}

/// Whether an item is marked done, names files that it changed, and neither git nor a record of the
/// agent's own tools has seen one of them change.
///
/// A word may look like a file and be none (`Next.js`): so it must be known to git, lie in a
/// folder, or be what the item says is written or created.
pub(super) fn is_unseen(
    item: &PlanItem,
    files: &[FileEntry],
    touched: &[FileTouch],
    in_base: &BTreeSet<String>,
) -> bool {
    let named = changed_by(item);
    // A path with a blank in it is two words here, and its end is enough.
    let is_at = |path: &str, name: &str| {
        let before = path.strip_suffix(name);
        before.is_some_and(|before| before.is_empty() || before.ends_with(['/', ' ']))
    };
    let is_seen = |name: &&str| {
        files.iter().filter_map(|file| file.path.as_deref()).any(|path| is_at(path, name))
            || touched.iter().any(|file| is_at(&file.path, name))
    };
    let makes = ["write ", "create "].iter().any(|verb| {
        item.text.get(..verb.len()).is_some_and(|start| start.eq_ignore_ascii_case(verb))
    });
    let is_file = |name: &&str| makes || name.contains('/') || in_base.contains(*name);
    named.iter().any(is_file) && !named.iter().any(is_seen)
}

/// A word that is a path: it has a folder or an ending, and nothing that a path seldom has.
fn path(word: &str) -> Option<&str> {
    let word = word.trim_end_matches(['.', ',', ';', ':', '!', '?']);
    let word = word.trim_matches(['`', '"', '\'', '(', ')', '[', ']']);
    let word = word.strip_prefix("./").unwrap_or(word);
    let name = word.rsplit('/').next().unwrap_or(word);
    let (stem, ending) = name.rsplit_once('.')?;
    let is_ending = (1..=5).contains(&ending.len())
        && ending.starts_with(|c: char| c.is_ascii_lowercase())
        && ending.bytes().all(|b| b.is_ascii_alphanumeric());
    let is_path = is_ending
        && (!stem.is_empty() || word.contains('/'))
        && !word.starts_with(['/', '~'])
        && !word.contains("..")
        && !word.contains("://")
        && !word.contains(['*', '<', '>', '$', '\\']);
    is_path.then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::specimen::file;
    use crate::model::transcript::TouchKind;

    fn named(text: &str, status: PlanStatus) -> Vec<String> {
        let item = PlanItem { text: text.into(), status };
        changed_by(&item).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn only_what_changes_a_named_file_can_be_held_against_git() {
        use PlanStatus::{Completed, InProgress};
        assert_eq!(named("Fix src/a.rs, and (`./b.py`).", Completed), ["src/a.rs", "b.py"]);
        assert_eq!(named("Fix src/a.rs", InProgress), [""; 0]);
        assert_eq!(named("Read src/a.rs", Completed), [""; 0]);
        assert_eq!(
            named("Fix v1.2 and/or /etc/x.conf, ../y.rs https://a.b/c.html *.rs", Completed),
            [""; 0]
        );
    }

    #[test]
    fn an_item_is_unseen_only_where_nothing_of_it_was_seen() {
        let item = |text: &str| PlanItem { text: text.into(), status: PlanStatus::Completed };
        let files = [file("src/a.rs", true), file("docs/a b.txt", false)];
        let touched = [FileTouch { path: "/w/out/b.bin".into(), kind: TouchKind::Added }];
        let in_base = BTreeSet::from(["known.md".to_owned()]);
        let unseen = |text: &str| is_unseen(&item(text), &files, &touched, &in_base);
        for seen in [
            "Fix a.rs",
            "Fix src/a.rs and src/z.rs",
            "Write b.bin",
            "Write docs/a b.txt",
            "Add Next.js",
            "Fix it",
        ] {
            assert!(!unseen(seen), "{seen}");
        }
        for text in ["Fix src/z.rs", "Write z.rs", "Update known.md", "Fix xa.rs in src/xa.rs"] {
            assert!(unseen(text), "{text}");
        }
    }
}
