//! Sampling: requests of a server to the application's model.

use serde_json::{Value, json};
use toolgate_core::{Json, SamplingContent, SamplingMessage, SamplingParams, SamplingResult};

/// Sampling request of a server to the application's model: the parameters of `sampling/createMessage`.
///
/// Let a person review the request before the model sees it, and the answer before it is sent.
///
/// Specification: [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).
///
/// ```no_run
/// use toolgate::{Client, client::{SamplingRequest, SamplingResponse}};
///
/// /// Answers with the application's model, after the user agreed.
/// async fn sample(request: SamplingRequest) -> Result<SamplingResponse, String> {
///     println!("{} asks for a completion of {} messages", request.server, request.params.messages.len());
///     Ok(SamplingResponse::text("my-model", "It rains."))
/// }
///
/// # async fn f() -> Result<(), toolgate::Error> {
/// let client = Client::builder().on_sample(sample).spawn(["weather-server"]).await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SamplingRequest {
    /// Id of the server that sent the request, as set on this client.
    pub server: String,
    /// Parameters of the sampling request: messages, maximum length, system prompt, tools and preferences.
    pub params: SamplingParams,
    /// Original parameters of the sampling request, with all members.
    pub json: Json,
}

impl SamplingRequest {
    /// Reads the parameters of `sampling/createMessage`.
    ///
    /// # Errors
    /// A description of the missing or invalid part.
    pub(super) fn read(
        server: &str,
        params: &Json,
        tools: bool,
    ) -> Result<SamplingRequest, &'static str> {
        let with_tools = params.get("tools").is_some() || params.get("toolChoice").is_some();
        if with_tools && !tools {
            return Err(
                "it contains tools, but this client did not declare support for tools in sampling",
            );
        }
        let read = SamplingParams::read(params)?;
        check_tool_results(&read.messages)?;
        Ok(SamplingRequest {
            server: server.to_owned(),
            params: read,
            json: params.clone(),
        })
    }
}

/// Checks that a message with tool results contains nothing else, and that it answers every tool use of the previous
/// message.
fn check_tool_results(messages: &[SamplingMessage]) -> Result<(), &'static str> {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let results = message.content.iter().filter_map(|block| match block {
            SamplingContent::ToolResult(result) => Some(result.tool_use_id.as_str()),
            _ => None,
        });
        let results: Vec<&str> = results.collect();
        if !results.is_empty() && results.len() != message.content.len() {
            return Err("a message with tool results also contains other content");
        }
        if open.iter().any(|id| !results.contains(id)) {
            return Err("a tool use has no result in the next message");
        }
        let uses = message.content.iter().filter_map(|block| match block {
            SamplingContent::ToolUse(used) => Some(used.id.as_str()),
            _ => None,
        });
        open = uses.collect();
    }
    Ok(())
}

/// Response to a sampling request, with the model's message: the result of `sampling/createMessage`.
///
/// ```
/// use toolgate::{client::SamplingResponse, core::{Json, SampledToolUse, SamplingResult}};
///
/// let said = SamplingResponse::text("gpt", "It rains.");
/// let input = Json::from_value(&serde_json::json!({}));
/// let used = SampledToolUse { id: "1".into(), name: "radar".into(), input };
/// let uses_a_tool = SamplingResponse::from(SamplingResult::using_tools("gpt", vec![used]));
/// # let _ = (said, uses_a_tool);
/// ```
#[derive(Clone, Debug)]
pub struct SamplingResponse(Value);

impl From<SamplingResult> for SamplingResponse {
    fn from(result: SamplingResult) -> SamplingResponse {
        SamplingResponse(result.to_json().to_value())
    }
}

impl SamplingResponse {
    /// Returns a sampling response with this text, from the model of this name.
    pub fn text(model: &str, text: &str) -> SamplingResponse {
        SamplingResult::text(model, text).into()
    }

    /// Returns a sampling response from JSON in the protocol's format: an object with `role`, `model`, `content` and
    /// `stopReason`.
    pub fn new(result: Value) -> SamplingResponse {
        SamplingResponse(result)
    }

    /// Returns the answer, cut to `max_tokens` words. A word is at least one token, so more words than tokens exceed
    /// the limit.
    pub(super) fn cut_to(mut self, max_tokens: u64) -> Result<Json, &'static str> {
        if self.0.get("role").is_none() || self.0.get("content").is_none() {
            return Err("the application's sampling result must have \"role\" and \"content\"");
        }
        let most = usize::try_from(max_tokens).unwrap_or(usize::MAX);
        let text = self.0.pointer_mut("/content/text");
        if let Some(Value::String(text)) = text
            && let Some(end) = end_of_word(text, most)
        {
            text.truncate(end);
            self.0["stopReason"] = json!("maxTokens");
        }
        Ok(Json::from_value(&self.0))
    }
}

/// Returns the end of the n-th word; `None` if the text has no more words.
fn end_of_word(text: &str, words: usize) -> Option<usize> {
    let mut inside = false;
    let (mut seen, mut end) = (0, 0);
    for (at, c) in text.char_indices() {
        let word = !c.is_whitespace();
        if word && !inside {
            if seen == words {
                return Some(end);
            }
            seen += 1;
        }
        if word {
            end = at + c.len_utf8();
        }
        inside = word;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(params: Value, tools: bool) -> Result<SamplingRequest, &'static str> {
        SamplingRequest::read("s", &Json::from_value(&params), tools)
    }

    /// Holds: SAMP-04.
    #[test]
    fn an_answer_is_at_most_as_long_as_asked_for() {
        let cut = |text: &str, most| {
            let json = SamplingResponse::text("m", text)
                .cut_to(most)
                .unwrap()
                .to_value();
            (json["content"]["text"].clone(), json["stopReason"].clone())
        };
        assert_eq!(
            cut("one two  three", 2),
            (json!("one two"), json!("maxTokens"))
        );
        assert_eq!(cut(" one two ", 2), (json!(" one two "), json!("endTurn")));
    }

    /// Holds: SAMP-02.
    #[test]
    fn tools_only_where_they_were_declared() {
        for (member, value) in [
            ("tools", json!([])),
            ("toolChoice", json!({"mode": "auto"})),
        ] {
            let params = json!({"messages": [], "maxTokens": 1, member: value});
            assert!(read(params.clone(), false).is_err(), "{member}");
            assert!(read(params, true).is_ok(), "{member}");
        }
        assert!(read(json!({"messages": []}), true).is_err());
    }

    /// Holds: SAMP-03.
    #[test]
    fn every_use_of_a_tool_is_answered() {
        let call =
            json!({"role": "assistant", "content": {"type": "tool_use", "id": "1", "name": "t"}});
        let result =
            json!({"role": "user", "content": [{"type": "tool_result", "toolUseId": "1"}]});
        let mixed = json!({"role": "user", "content": [{"type": "tool_result", "toolUseId": "1"},
            {"type": "text", "text": "x"}]});
        let other = json!({"role": "user", "content": {"type": "text", "text": "x"}});
        let ask = |messages: &[&Value]| read(json!({"messages": messages, "maxTokens": 1}), true);
        assert!(ask(&[&call, &result, &other]).is_ok());
        assert!(ask(&[&call, &mixed]).is_err());
        assert!(ask(&[&call, &other]).is_err());
    }
}
