//! What the servers of the bench share: the text of a tool, and the list of many tools.

use serde_json::{Value, json};

/// The tools of a large list.
pub fn many(count: usize) -> Vec<Value> {
    (0..count).map(definition).collect()
}

/// One definition of about a kilobyte, as real ones have.
fn definition(n: usize) -> Value {
    let text =
        "Finds the records that fit, newest first, and says how many more there are. ".repeat(4);
    let field = |name: &str| json!({"type": "string", "description": format!("The {name} of the records that are looked for.")});
    json!({
        "name": format!("tool_{n:05}"),
        "title": format!("Tool {n}"),
        "description": text,
        "inputSchema": {"type": "object", "properties": {
            "query": field("query"), "owner": field("owner"), "label": field("label"),
            "limit": {"type": "integer", "minimum": 1, "maximum": 100}},
            "required": ["query"]},
    })
}

/// The word behind an option of the command line.
pub fn word(option: &str) -> Option<String> {
    std::env::args().skip_while(|word| word != option).nth(1)
}

/// The number behind an option of the command line.
pub fn number(option: &str) -> Option<u32> {
    word(option)?.parse().ok()
}
