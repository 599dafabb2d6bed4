//! Features of the prompts: typed arguments, several messages, state and errors.

use super::{ProgramCommand, assert_arguments, empty, messages, rejects_prompts, sorted_names};
use serde_json::{Value, json};
use toolgate::{Client, client::ListedItem};

pub(crate) async fn prompt_server(command: ProgramCommand) {
    let client = Client::spawn(command.clone()).await.unwrap();
    let instructions = "Prompts for code, data, texts, errors and lessons.";
    assert_eq!(client.instructions().unwrap(), instructions);
    definitions(&client.prompts().await.unwrap());
    fixed(&client).await;
    filled(&client).await;
    rejected(&command).await;
}

fn definitions(prompts: &[ListedItem]) {
    let names = [
        "code_review",
        "data_analysis",
        "debug_assistant",
        "greeting",
        "learning_path",
        "writing_assistant",
    ];
    assert_eq!(sorted_names(prompts), names);
    assert_arguments(prompts, "greeting", &[]);
    assert_arguments(prompts, "learning_path", &[]);
    let review = [
        ("language", true, "Programming language of the code."),
        ("file_path", true, "Path of the file."),
        ("focus_areas", false, "What to look at, as a JSON list."),
    ];
    assert_arguments(prompts, "code_review", &review);
    let writing = [
        (
            "content_type",
            true,
            "Type of the text: email, documentation or blog.",
        ),
        ("audience", true, "Readers of the text."),
        ("tone", false, "Tone of the text."),
        ("key_points", true, "Points to make, as a JSON list."),
    ];
    assert_arguments(prompts, "writing_assistant", &writing);
}

/// Returns the description of the result, and the messages.
async fn get(
    client: &Client,
    name: &str,
    arguments: Value,
) -> (String, Vec<(&'static str, String)>) {
    let prompt = client.prompt(name, arguments).await.unwrap();
    (
        prompt.description.clone().unwrap_or_default(),
        messages(&prompt),
    )
}

fn said(role: &'static str, text: &str) -> (&'static str, String) {
    (role, text.to_owned())
}

async fn fixed(client: &Client) {
    let (_, greeting) = get(client, "greeting", empty()).await;
    let expected = [
        said("user", "Hello! I would like to talk."),
        said("assistant", "Hello! What would you like to talk about?"),
    ];
    assert_eq!(greeting, expected);
    let (_, path) = get(client, "learning_path", empty()).await;
    let lessons = "You plan lessons in English for the level intermediate.";
    let expected = [
        said("assistant", lessons),
        said("user", "What should I learn next?"),
    ];
    assert_eq!(path, expected);
}

async fn filled(client: &Client) {
    let arguments =
        json!({"language": "Rust", "file_path": "a.rs", "focus_areas": r#"["speed", "names"]"#});
    let (description, review) = get(client, "code_review", arguments).await;
    assert_eq!(description, "Review of a.rs");
    let role = "You review Rust code for a reader of intermediate level.";
    let expected = [
        said("assistant", role),
        said("user", "Review the code of a.rs. Focus on: speed, names"),
    ];
    assert_eq!(review, expected);
    let arguments = json!({"language": "Rust", "file_path": "a.rs"});
    let (_, review) = get(client, "code_review", arguments).await;
    let expected = "Review the code of a.rs. Focus on: correctness, performance";
    assert_eq!(review[1], said("user", expected));

    let arguments = json!({"data_type": "csv", "analysis_type": "trend"});
    let (_, analysis) = get(client, "data_analysis", arguments).await;
    let revision = format!("I will write the analysis over MCP {}.", client.revision());
    let expected = [
        said("user", "My csv data needs a trend analysis. Context: none"),
        said("assistant", &revision),
    ];
    assert_eq!(analysis, expected);

    let arguments = json!({"content_type": "blog", "audience": "cooks", "tone": "warm", "key_points": r#"["salt", "fire"]"#});
    let (description, writing) = get(client, "writing_assistant", arguments).await;
    assert_eq!(description, "A blog for cooks");
    let expected = [
        said(
            "assistant",
            "I help to write a blog for cooks in a warm tone.",
        ),
        said("user", "Point 1: salt. What do you suggest?"),
        said("assistant", "For salt I suggest:"),
        said("user", "Point 2: fire. What do you suggest?"),
        said("assistant", "For fire I suggest:"),
    ];
    assert_eq!(writing, expected);

    let arguments = json!({"error_message": "it hangs", "stack": r#"["tokio", "axum"]"#, "tried_solutions": r#"["a restart"]"#});
    let (description, debug) = get(client, "debug_assistant", arguments).await;
    assert_eq!(description, "An error in tokio");
    let expected = [
        said("assistant", "You debug programs with tokio, axum."),
        said("user", "I get this error: it hangs"),
        said("user", "I have tried: a restart"),
    ];
    assert_eq!(debug, expected);
}

async fn rejected(command: &ProgramCommand) {
    let wrong = [
        (
            "debug_assistant",
            json!({"error_message": "it hangs", "stack": "[]"}),
        ),
        (
            "debug_assistant",
            json!({"error_message": "it hangs", "stack": "tokio"}),
        ),
        ("debug_assistant", json!({"error_message": "it hangs"})),
        ("code_review", json!({"language": "Rust"})),
        ("nothing", json!({})),
    ];
    rejects_prompts(command, &wrong).await;
}
