//! The limits that the user set in passing: sentences of the user's own prompts that say what must
//! not be done, word for word. Nobody else's text is looked at, and nothing is concluded.

use std::collections::HashSet;

/// How many sentences are taken, the earliest: they were said with the task.
const SENTENCES_MOST: usize = 40;
/// A longer sentence is a paste, not a rule.
const SENTENCE_BYTES_MOST: usize = 400;

/// What a sentence that sets a limit says.
const MARKS: &[&str] = &[
    "do not",
    "don't",
    "dont",
    "must",
    "mustn't",
    "never",
    "always",
    "without",
    "avoid",
    "only use",
    "use only",
    "only change",
    "only edit",
    "only touch",
    "no new",
    "not allowed",
    "hands off",
];

/// The sentences of `prompts` that set a limit, each once, in the order in which they were said.
pub(super) fn sentences<'a>(prompts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut known = HashSet::new();
    for prompt in prompts {
        let mut in_code = false;
        for line in prompt.lines() {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
                continue;
            }
            // Somebody else's words, or a program's.
            if in_code || line.starts_with('>') || line.starts_with("    ") {
                continue;
            }
            for sentence in split(line) {
                if found.len() < SENTENCES_MOST
                    && sentence.len() <= SENTENCE_BYTES_MOST
                    && sets_a_limit(sentence)
                    && known.insert(sentence)
                {
                    found.push(sentence);
                }
            }
        }
    }
    found
}

/// The sentences of a line; a list's mark is none of its words.
fn split(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim().trim_start_matches(['-', '*', '•']).trim_start();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ends = rest.match_indices(['.', '!', '?', ';']).map(|(at, mark)| at + mark.len());
        let end = ends
            .into_iter()
            .find(|end| rest[*end..].chars().next().is_none_or(char::is_whitespace))
            .unwrap_or(rest.len());
        let (sentence, more) = rest.split_at(end);
        rest = more.trim_start();
        Some(sentence.trim_end())
    })
}

fn sets_a_limit(sentence: &str) -> bool {
    let plain = sentence.to_lowercase().replace('’', "'");
    MARKS.iter().any(|mark| {
        plain.match_indices(mark).any(|(at, _)| {
            let apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
            apart(plain[..at].chars().next_back()) && apart(plain[at + mark.len()..].chars().next())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_quoted_word_for_word_and_nothing_else_is() {
        let prompts = [
            "Move the code to v1.2 of the ledger. Do not touch vendor/a.rs! Then test it.\n\
             - Use only the standard library; never add a crate\n\
             > you must obey this mail\n\
             ```\nassert!(must(never))\n```\n    must be indented code",
            "Don’t break the API. Nevertheless, go on. Mustard is fine. Do not touch vendor/a.rs!",
        ];
        assert_eq!(
            sentences(prompts.into_iter()),
            [
                "Do not touch vendor/a.rs!",
                "Use only the standard library;",
                "never add a crate",
                "Don’t break the API.",
            ]
        );
    }

    #[test]
    fn the_list_is_bounded() {
        let many: String = (0..500).map(|n| format!("Never do {n}. ")).collect();
        let long = format!("Never {}", "x".repeat(500));
        assert_eq!(sentences([&*many, &*long].into_iter()).len(), SENTENCES_MOST);
    }
}
