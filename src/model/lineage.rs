//! Which records of a transcript lead to its end, where they form a tree: a prompt that a person
//! took back leaves a branch behind that counts no more.
//!
//! A transcript is read once, every record noted by what it is and where it hangs. Only if a
//! branch was left is it told again, and the records of that branch are then passed over.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A transcript of more records is taken as one line: 400,000 are some 20 MiB here.
const NODES_MOST: usize = 400_000;
const NONE: u32 = u32::MAX;

/// What a record is to the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A prompt or an answer: it counts on the way to the end. Records of one answer count
    /// together, wherever each hangs.
    Speaks,
    /// A result, a remark: it counts with what it hangs on. Results of parallel calls hang on a
    /// call each, and only one of them is on the way.
    Follows,
}

/// Where a record hangs.
#[derive(Clone, Copy, Debug)]
pub enum Parent<'a> {
    /// On nothing: a conversation begins.
    Root,
    On(&'a str),
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    kind: Kind,
    /// Of which answer it is a part; 0 for none.
    answer: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Lineage {
    place: HashMap<u64, u32>,
    nodes: Vec<Node>,
    /// The second telling: what counts, and what has been told already.
    counted: Option<Vec<bool>>,
    is_too_long: bool,
}

impl Lineage {
    /// Notes a record; says whether it counts. One that comes twice counts once.
    pub fn counts(&mut self, id: &str, parent: Parent<'_>, kind: Kind, answer: &str) -> bool {
        let id = hash(id);
        if let Some(counted) = &mut self.counted {
            let known = self.place.get(&id).and_then(|at| counted.get_mut(*at as usize));
            // What was appended meanwhile is told as it stands.
            return known.is_none_or(std::mem::take);
        }
        if self.place.contains_key(&id) {
            return false;
        }
        if self.nodes.len() >= NODES_MOST {
            *self = Self { is_too_long: true, ..Self::default() };
        }
        if self.is_too_long {
            return true;
        }
        let at = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        let parent = match parent {
            Parent::Root => NONE,
            // A parent that is not there was torn or skipped: nothing is lost for that.
            Parent::On(parent) => {
                *self.place.get(&hash(parent)).unwrap_or(&at.checked_sub(1).unwrap_or(NONE))
            }
        };
        let answer = if answer.is_empty() { 0 } else { hash(answer) };
        self.nodes.push(Node { parent, kind, answer });
        self.place.insert(id, at);
        true
    }

    /// What a second telling needs, with the number of records that do not count; `None` where
    /// all of the first one counts.
    pub fn second_telling(self) -> Option<(Self, usize)> {
        let last = self.nodes.iter().rposition(|node| node.kind == Kind::Speaks)?;
        if self.counted.is_some() {
            return None;
        }
        let mut counted = vec![false; self.nodes.len()];
        let mut answers = HashSet::new();
        let mut at = last;
        // A parent always stands before its child, so that this ends.
        while let Some(node) = self.nodes.get(at) {
            counted[at] = true;
            if node.answer != 0 {
                answers.insert(node.answer);
            }
            at = node.parent as usize;
        }
        for (at, node) in self.nodes.iter().enumerate() {
            let with_parent = counted.get(node.parent as usize).copied().unwrap_or(true);
            counted[at] |= match node.kind {
                Kind::Speaks => answers.contains(&node.answer),
                Kind::Follows => with_parent,
            };
        }
        let abandoned = counted.iter().filter(|counted| !**counted).count();
        let again = Self { place: self.place, counted: Some(counted), ..Self::default() };
        (abandoned > 0).then_some((again, abandoned))
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{Follows, Speaks};

    /// `id parent answer`, `-` for none; upper-case ids speak. Gives the ids that count.
    fn counted(records: &str) -> Vec<String> {
        let tell = |lineage: &mut Lineage| -> Vec<String> {
            let mut told = Vec::new();
            for record in records.lines().map(str::trim).filter(|line| !line.is_empty()) {
                let words: Vec<&str> = record.split(' ').collect();
                let kind = if words[0].starts_with(char::is_uppercase) { Speaks } else { Follows };
                let parent = if words[1] == "-" { Parent::Root } else { Parent::On(words[1]) };
                if lineage.counts(words[0], parent, kind, words.get(2).unwrap_or(&"")) {
                    told.push(words[0].to_owned());
                }
            }
            told
        };
        let mut lineage = Lineage::default();
        let once = tell(&mut lineage);
        let Some((mut lineage, _)) = lineage.second_telling() else { return once };
        let twice = tell(&mut lineage);
        assert!(lineage.second_telling().is_none());
        twice
    }

    #[test]
    fn one_line_counts_whole_and_each_record_once() {
        assert_eq!(
            counted("P -\n a P\n A a m1\n r A\n A a m1\n B r m2"),
            ["P", "a", "A", "r", "B"]
        );
    }

    #[test]
    fn results_of_parallel_calls_all_count() {
        let records = "P -\n A P m\n B A m\n C B m\n ra A\n na ra\n rb B\n rc C\n D rc m2";
        assert_eq!(counted(records).len(), 9);
        // The first call ends last.
        let records = "P -\n A P m\n B A m\n C B m\n rb B\n rc C\n ra A\n D ra m2";
        assert_eq!(counted(records).len(), 8);
    }

    #[test]
    fn a_prompt_taken_back_counts_no_more_nor_does_what_followed_it() {
        let records = "P -\n A P m\n Q A\n q Q\n B Q m2\n rb B\n R A\n C R m3";
        assert_eq!(counted(records), ["P", "A", "R", "C"]);
        assert_eq!(counted("P -\n A P\n Q -\n B Q"), ["Q", "B"], "the first one");
    }

    #[test]
    fn a_lost_parent_loses_nothing() {
        assert_eq!(counted("P -\n A lost m\n r A\n B gone m2").len(), 4);
    }
}
