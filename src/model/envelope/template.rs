//! The words: blocks of `templates/envelope.md`, with holes like `{{contract}}`.

const TEMPLATE: &str = include_str!("../../../templates/envelope.md");

/// The block `name`, without the line end at its end.
pub(super) fn block(name: &str) -> &'static str {
    let blocks = TEMPLATE.split("=== ").skip(1);
    blocks
        .filter_map(|block| block.split_once('\n'))
        .find(|(known, _)| *known == name)
        .map(|(_, text)| text.trim_end_matches('\n'))
        .expect("the template has every block that is asked for")
}

/// The block `name` with its holes filled, each once: what is filled in is never read for holes.
pub(super) fn fill(name: &str, holes: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = block(name);
    while let Some((before, after)) = rest.split_once("{{") {
        let (hole, after) = after.split_once("}}").expect("every hole of the template is closed");
        let (_, value) = holes
            .iter()
            .find(|(known, _)| *known == hole)
            .expect("every hole of the template is filled");
        out.push_str(before);
        out.push_str(value);
        rest = after;
    }
    out.push_str(rest);
    out
}
