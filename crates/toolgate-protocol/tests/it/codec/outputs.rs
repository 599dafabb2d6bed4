//! Results.

use super::{json, meta, object, text, value};
use proptest::prelude::*;
use serde_json::{Value, json as tree};
use toolgate_protocol::{
    dialect::{self, Dialect},
    json::{Json, JsonKind},
    method::{
        complete::CompleteResult,
        content::{Content, ContentKind},
        definition::ItemKind,
        initialize::Implementation,
        list::CacheHint,
        operation::Op,
        output::Output,
        prompts_get::{PromptMessage, PromptResult},
        resources_read::ReadResult,
        tools_call::ToolResult,
    },
};

fn contents() -> impl Strategy<Value = Json> {
    (text(), text(), any::<bool>(), object()).prop_map(|(uri, body, blob, more)| {
        let mut part = more;
        let (keep, lose) = if blob {
            ("blob", "text")
        } else {
            ("text", "blob")
        };
        part.as_object_mut().expect("one").remove(lose);
        part["uri"] = uri.into();
        part[keep] = body.into();
        json(&part)
    })
}

fn block() -> impl Strategy<Value = Content> {
    let media = |word: &'static str| {
        (text(), text())
            .prop_map(move |(data, mime)| tree!({"type": word, "data": data, "mimeType": mime}))
    };
    let of = prop_oneof![
        text().prop_map(|text| tree!({"type": "text", "text": text})),
        media("image"),
        media("audio"),
        contents().prop_map(|c| tree!({"type": "resource", "resource": c.to_value()})),
        (text(), text())
            .prop_map(|(uri, name)| tree!({"type": "resource_link", "uri": uri, "name": name})),
        "[a-z]{9}".prop_map(|word| tree!({"type": word})),
    ];
    (of, prop::option::of(object())).prop_map(|(mut block, annotations)| {
        if let Some(annotations) = annotations {
            block["annotations"] = annotations;
        }
        Content::read(json(&block)).expect("a block")
    })
}

fn hint() -> impl Strategy<Value = CacheHint> {
    (0..i64::MAX as u64, any::<bool>()).prop_map(|(ttl_ms, public)| CacheHint { ttl_ms, public })
}

fn output() -> impl Strategy<Value = Output> {
    let tool = (
        prop::collection::vec(block(), 0..4),
        prop::option::of(value()),
        any::<bool>(),
        meta(),
    );
    let read = (prop::collection::vec(contents(), 0..4), hint(), meta());
    let message = (any::<bool>(), block())
        .prop_map(|(assistant, content)| PromptMessage { assistant, content });
    let prompt = (
        prop::option::of(text()),
        prop::collection::vec(message, 0..4),
        meta(),
    );
    let complete = (
        prop::collection::vec(text(), 0..=CompleteResult::MAX_VALUES),
        prop::option::of(0..i64::MAX as u64),
        prop::option::of(any::<bool>()),
        meta(),
    );
    prop_oneof![
        tool.prop_map(|(content, structured, is_error, meta)| {
            let structured = structured.as_ref().map(json);
            Output::Tool(ToolResult {
                content,
                structured,
                is_error,
                meta,
                ..ToolResult::default()
            })
        }),
        read.prop_map(|(contents, hint, meta)| Output::Resource(ReadResult {
            contents,
            hint,
            meta
        })),
        prompt.prop_map(|(description, messages, meta)| {
            Output::Prompt(PromptResult {
                description,
                messages,
                meta,
            })
        }),
        complete.prop_map(|(values, total, more, meta)| {
            Output::Complete(CompleteResult {
                values,
                total,
                has_more: more,
                meta,
            })
        }),
    ]
}

fn op(output: &Output) -> Op {
    match output {
        Output::Tool(_) => Op::Tool,
        Output::Resource(_) => Op::Resource,
        Output::Prompt(_) => Op::Prompt,
        Output::Complete(_) => Op::Complete(ItemKind::Prompt),
    }
}

/// The same, told apart by the revision's name alone, not by the table under test.
fn has_words(dialect: &Dialect, kind: ContentKind) -> bool {
    match kind {
        ContentKind::Text | ContentKind::Image | ContentKind::Resource => true,
        ContentKind::Audio => dialect.revision >= "2025-03-26",
        ContentKind::ResourceLink => dialect.revision >= "2025-06-18",
        ContentKind::Other => false,
    }
}

fn takes(dialect: &Dialect, structured: &Json) -> bool {
    match dialect.revision {
        "2024-11-05" | "2025-03-26" => false,
        "2026-07-28" => true,
        _ => structured.kind() == JsonKind::Object,
    }
}

/// Returns the output as a reader of that revision gets it.
fn worded(dialect: &Dialect, output: &Output) -> Output {
    let block = |content: &Content| {
        if has_words(dialect, content.kind) {
            return content.clone();
        }
        let word = |key: &str| {
            content
                .json
                .get(key)
                .and_then(|v| v.string())
                .unwrap_or_default()
        };
        Content::text(&match content.kind {
            ContentKind::ResourceLink => {
                format!("[link of a server to {}: {}]", word("name"), word("uri"))
            }
            ContentKind::Audio => {
                let mime = word("mimeType");
                format!("[audio of type {mime}, which this protocol revision does not support]")
            }
            _ => {
                let kind = word("type");
                format!("[content of type {kind}, which this protocol revision does not support]")
            }
        })
    };
    let mut output = output.clone();
    match &mut output {
        Output::Tool(result) => {
            let text = result.structured_as_text();
            result.content = result.content.iter().map(block).collect();
            result.structured = result.structured.take().filter(|s| takes(dialect, s));
            if result.structured.is_none() {
                result.content.extend(text);
            }
            let has_text = result.content.iter().any(|c| c.kind == ContentKind::Text);
            result.without_text = result.structured.is_some() && !has_text;
        }
        Output::Prompt(result) => {
            for message in &mut result.messages {
                message.content = block(&message.content);
            }
        }
        Output::Resource(result) if !dialect.stateless => result.hint = CacheHint::default(),
        Output::Resource(_) | Output::Complete(_) => {}
    }
    output
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Holds: TOOL-10, TOOL-11, TOOL-16, BASE-15.
    #[test]
    fn a_result_is_read_back(output in output()) {
        let server = Implementation::new("s", "1");
        for dialect in dialect::ALL {
            let written = dialect.output(&output, &server);
            prop_assert_eq!(written.get("resultType").is_some(), dialect.stateless);
            let again = Json::read(written.as_str().as_bytes().to_vec(), &Default::default());
            prop_assert!(again.is_ok(), "{}", written.as_str());
            let read = Output::read(op(&output), &written);
            prop_assert_eq!(read, Ok(worded(dialect, &output)), "{}", dialect.revision);
        }
    }
}

/// A tree that is no result is not read as one.
#[test]
fn what_is_no_result_is_none() {
    for (op, wrong) in [
        (Op::Tool, tree!({"content": null})),
        (Op::Tool, tree!({"content": "x"})),
        (Op::Tool, tree!({"content": [{"text": "x"}]})),
        (Op::Resource, tree!({"contents": [{"uri": "a:b"}]})),
        (Op::Resource, tree!({"contents": [{"text": "x"}]})),
        (
            Op::Prompt,
            tree!({"messages": [{"role": "system", "content": {"type": "text", "text": "x"}}]}),
        ),
        (Op::Prompt, tree!({"messages": [{"role": "user"}]})),
        (
            Op::Complete(ItemKind::Prompt),
            tree!({"completion": {"values": [1]}}),
        ),
        (Op::Complete(ItemKind::Prompt), Value::Null),
    ] {
        assert!(Output::read(op, &json(&wrong)).is_err(), "{wrong}");
    }
}
