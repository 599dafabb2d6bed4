//! A server with prompts: texts that people choose and fill in, here with completion of an argument.
//!
//! `cargo run --example prompts` serves on standard input and output.

use toolgate::{Content, Cx, HandlerExit, Server, core::PromptMessage, prompt};

const TONES: [&str; 3] = ["friendly", "frank", "harsh"];

/// Reviews a text.
#[prompt(title = "Review a text", complete(tone = tones))]
fn review(
    /// The text.
    text: String,
    /// How strict the review is; friendly if it is left out.
    tone: Option<String>,
) -> Result<Vec<PromptMessage>, HandlerExit> {
    let tone = tone.unwrap_or_else(|| TONES[0].to_owned());
    if !TONES.contains(&tone.as_str()) {
        let tones = TONES.join(", ");
        return Err(HandlerExit::code(
            -1,
            format!("unknown tone {tone:?}; there are {tones}"),
        ));
    }
    let ask = format!("Write a {tone} review of this text:\n\n{text}");
    Ok(vec![
        PromptMessage::user(Content::text(&ask)),
        PromptMessage::assistant(Content::text("What I like about it:")),
    ])
}

/// Explains a word to a child.
#[prompt]
fn explain(
    /// The word.
    word: String,
) -> String {
    format!("Explain the word {word:?} to a child of six, in three sentences.")
}

/// The tones that start with what is typed so far.
async fn tones(typed: String, _cx: Cx) -> Result<Vec<String>, HandlerExit> {
    let fitting = TONES.iter().filter(|tone| tone.starts_with(&typed));
    Ok(fitting.map(|tone| (*tone).to_owned()).collect())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), toolgate::ServeError> {
    let server = Server::new("prompts", "1.0.0")
        .prompt(review)
        .prompt(explain);
    toolgate::stdio(server).await
}
