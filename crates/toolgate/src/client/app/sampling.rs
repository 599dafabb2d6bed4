//! Sampling: requests of a server to the application's model.

use serde_json::{Value, json};
use toolgate_core::Json;

/// Sampling request of a server to the application's model: the parameters of `sampling/createMessage`.
///
/// Let a person review the request before the model sees it, and the answer before it is sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SamplingRequest {
    /// Id of the server that sent the request, as set on this client.
    pub server: String,
    /// All parameters of the sampling request: `messages`, `systemPrompt`, `modelPreferences`, `temperature` and so on.
    pub params: Value,
    /// Maximum length of the model's answer, in tokens (`maxTokens`).
    pub max_tokens: u64,
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
        let params = params.to_value();
        let messages = params.get("messages").and_then(Value::as_array);
        let messages = messages.ok_or("\"messages\" must be an array")?;
        let max_tokens = params.get("maxTokens").and_then(whole);
        let max_tokens = max_tokens.ok_or("\"maxTokens\" must be an integer above 0")?;
        let with_tools = params.get("tools").is_some() || params.get("toolChoice").is_some();
        if with_tools && !tools {
            return Err("this client did not declare tools in sampling");
        }
        check_tool_results(messages)?;
        Ok(SamplingRequest {
            server: server.to_owned(),
            params,
            max_tokens,
        })
    }

    /// Returns the conversation so far: the messages of user and model in the protocol's format.
    pub fn messages(&self) -> &[Value] {
        let messages = self.params.get("messages").and_then(Value::as_array);
        messages.map_or(&[], Vec::as_slice)
    }
}

fn whole(n: &Value) -> Option<u64> {
    let whole = |n: &f64| *n >= 1.0 && n.fract() == 0.0;
    n.as_u64()
        .or_else(|| n.as_f64().filter(whole).map(|n| n as u64))
        .filter(|n| *n > 0)
}

/// Returns the content blocks of a message; a single block needs no array.
fn blocks(message: &Value) -> Vec<&Value> {
    match message.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().collect(),
        Some(block) => vec![block],
        None => Vec::new(),
    }
}

/// Checks that a message with tool results contains nothing else, and that it answers every tool use of the previous
/// message.
fn check_tool_results(messages: &[Value]) -> Result<(), &'static str> {
    let mut open: Vec<&Value> = Vec::new();
    for message in messages {
        let of = |kind: &str, key: &'static str| -> Vec<&Value> {
            let typed = |block: &&&Value| block.get("type").is_some_and(|t| t == kind);
            let blocks = blocks(message);
            blocks
                .iter()
                .filter(typed)
                .filter_map(|b| b.get(key))
                .collect()
        };
        let results = of("tool_result", "toolUseId");
        if !results.is_empty() && results.len() != blocks(message).len() {
            return Err("a message with tool results also contains other content");
        }
        if open.iter().any(|id| !results.contains(id)) {
            return Err("a tool use has no result in the next message");
        }
        open = of("tool_use", "id");
    }
    Ok(())
}

/// Response to a sampling request, with the model's message: the result of `sampling/createMessage`.
#[derive(Clone, Debug)]
pub struct SamplingResponse(Value);

impl SamplingResponse {
    /// Returns a sampling response with this text, from the model of this name.
    pub fn text(model: &str, text: &str) -> SamplingResponse {
        let content = json!({"type": "text", "text": text});
        SamplingResponse(
            json!({"role": "assistant", "model": model, "content": content, "stopReason": "endTurn"}),
        )
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
            return Err("a sampling result needs \"role\" and \"content\"");
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
