//! Size limits for content from servers.

use crate::humanize;
use std::sync::Arc;
use toolgate_core::{
    Error, ErrorKind, InputRequestKind, InputRequests, Item, ItemKind, Json, Origin, Output,
    RefusalReason, ReporterEvent, Sanitizer, UntrustedContent,
};

/// Size limits of content from servers (results, definitions, texts), in bytes unless noted.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SizeLimits {
    /// Maximum size of a call's result, in bytes. Default: 16 MiB.
    pub result: usize,
    /// Maximum number of content blocks in a result. Default: 1000.
    pub blocks: usize,
    /// Maximum size of an item definition, in bytes; the entry of a skill may be four times as long. Default: 64 KiB.
    pub definition: usize,
    /// Maximum size of an item's description, in bytes. Default: 8 KiB.
    pub description: usize,
    /// Maximum size of server instructions, error texts and progress messages, in bytes; for [`TextTruncation`].
    /// Default: 8 KiB.
    pub text: usize,
    /// Maximum size of the data of a server's log message, in bytes; larger messages are dropped. Default: 64 KiB.
    pub log: usize,
    /// Maximum size of all input requests of one round of a call, in bytes. Default: 64 KiB.
    pub input_requests: usize,
}

impl SizeLimits {
    /// Factor of the definition limit for the entry of a skill.
    const SKILL_DEFINITION_FACTOR: usize = 4;
}

impl Default for SizeLimits {
    /// Returns the default limits, as listed at the fields.
    fn default() -> SizeLimits {
        const KIB: usize = 1024;
        SizeLimits {
            result: 16 * KIB * KIB,
            blocks: 1000,
            definition: 64 * KIB,
            description: 8 * KIB,
            text: 8 * KIB,
            log: 64 * KIB,
            input_requests: 64 * KIB,
        }
    }
}

impl Sanitizer for SizeLimits {
    fn name(&self) -> &'static str {
        "size"
    }

    fn sanitize(
        &self,
        _: Option<&Origin>,
        item: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        match value {
            UntrustedContent::Event(ReporterEvent::Log(log)) => {
                limit(log.data.as_str().len(), self.log, "a log message")
            }
            // [`TextTruncation`] truncates these texts.
            UntrustedContent::Instructions(_)
            | UntrustedContent::Error(_)
            | UntrustedContent::Event(ReporterEvent::Progress(_)) => Ok(()),
            UntrustedContent::Item(item) => self.definition(item),
            UntrustedContent::Output(output) => self.output(item, output),
            UntrustedContent::InputRequests(questions) => self.check_input_requests(questions),
        }
    }
}

/// Sanitizer that truncates long texts from servers: instructions, error texts, progress and log messages. It runs
/// after secrets are redacted: half a secret would not be detected.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TextTruncation {
    /// Maximum size of texts from servers, in bytes: instructions, error texts, progress and log messages.
    pub text: usize,
}

impl TextTruncation {
    fn truncate(&self, text: &mut String) {
        if text.len() > self.text {
            let end = (0..=self.text)
                .rev()
                .find(|at| text.is_char_boundary(*at))
                .unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
    }
}

impl Sanitizer for TextTruncation {
    fn name(&self) -> &'static str {
        "cut"
    }

    fn sanitize(
        &self,
        _: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        match value {
            UntrustedContent::Instructions(text) => self.truncate(text),
            UntrustedContent::Error(error) => {
                let mut text = error.public_message().to_owned();
                self.truncate(&mut text);
                if text != error.public_message() {
                    error.set_public_message(text);
                }
            }
            UntrustedContent::Event(ReporterEvent::Progress(progress)) => {
                progress
                    .message
                    .iter_mut()
                    .for_each(|text| self.truncate(text));
            }
            UntrustedContent::Event(ReporterEvent::Log(log)) => {
                self.truncate(&mut log.level);
                log.logger.iter_mut().for_each(|text| self.truncate(text));
            }
            UntrustedContent::Item(_)
            | UntrustedContent::Output(_)
            | UntrustedContent::InputRequests(_) => {}
        }
        Ok(())
    }
}

impl SizeLimits {
    /// Returns the sanitizer that truncates texts from servers to these limits.
    pub fn truncation(&self) -> TextTruncation {
        TextTruncation { text: self.text }
    }

    fn definition(&self, item: &Item) -> Result<(), Error> {
        // The entry of a skill names up to 512 files.
        let most = match item.kind() {
            ItemKind::Skill => self
                .definition
                .saturating_mul(SizeLimits::SKILL_DEFINITION_FACTOR),
            _ => self.definition,
        };
        limit(item.def.json().as_str().len(), most, "its definition")?;
        limit(
            item.def.description().map_or(0, |text| text.len()),
            self.description,
            "its description",
        )
    }

    fn output(&self, item: Option<&Arc<Item>>, output: &Output) -> Result<(), Error> {
        let held = |what: String| {
            let source = item.map_or_else(|| "the server".into(), |item| item.shared_name());
            let result = match output {
                Output::Tool(_) => "the tool ran, but its result",
                _ => "the result",
            };
            let text = format!("{result} was held back: {what}; ask {source} for less");
            Err(Error::new(
                ErrorKind::Refused(RefusalReason::BlockedResult),
                text,
            ))
        };
        if output.blocks() > self.blocks {
            return held(format!(
                "it has {} content blocks, and the limit is {}",
                output.blocks(),
                self.blocks
            ));
        }
        match output.size() {
            size if size > self.result => held(format!(
                "its size is {}, and the limit is {}",
                humanize::size(size),
                humanize::size(self.result)
            )),
            _ => Ok(()),
        }
    }

    fn check_input_requests(&self, questions: &InputRequests) -> Result<(), Error> {
        let size = |json: &Json| json.as_str().len();
        let all = questions.requests.iter().map(|ask| {
            ask.key.len()
                + match &ask.kind {
                    InputRequestKind::Elicit(params) | InputRequestKind::Sample(params) => {
                        size(params)
                    }
                    InputRequestKind::SignIn(page) => page.url.len() + page.message.len(),
                    InputRequestKind::Approve(_) | InputRequestKind::Roots => 0,
                }
        });
        limit(
            all.sum(),
            self.input_requests,
            "all input requests of the server together",
        )
    }
}

fn limit(size: usize, most: usize, what: &str) -> Result<(), Error> {
    if size <= most {
        return Ok(());
    }
    let text = format!(
        "the size of {what} is {}, but the limit is {}, which the operator can raise",
        humanize::size(size),
        humanize::size(most)
    );
    Err(Error::new(ErrorKind::Upstream, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolgate_core::{InputRequest, LogMessage, Progress};

    const SMALL: SizeLimits = SizeLimits {
        result: 10,
        blocks: 1,
        definition: 10,
        description: 10,
        text: 10,
        log: 10,
        input_requests: 10,
    };

    fn scrub(value: UntrustedContent<'_>) -> Result<(), Error> {
        SMALL.sanitize(None, None, value)
    }

    fn cut(value: UntrustedContent<'_>) {
        SMALL.truncation().sanitize(None, None, value).unwrap();
    }

    fn string(length: usize) -> Json {
        Json::from_value(&json!("x".repeat(length - 2)))
    }

    #[test]
    fn truncates_long_texts_at_a_character() {
        for (text, expected) in [
            ("0123456789", "0123456789"),
            ("0123456789a", "0123456789…"),
            ("012345678äb", "012345678…"),
        ] {
            let mut about = text.to_owned();
            cut(UntrustedContent::Instructions(&mut about));
            let mut error = Error::new(ErrorKind::Upstream, text.to_owned());
            cut(UntrustedContent::Error(&mut error));
            let mut event = ReporterEvent::Progress(Progress {
                progress: 1.0,
                total: None,
                message: Some(text.to_owned()),
            });
            cut(UntrustedContent::Event(&mut event));
            let ReporterEvent::Progress(progress) = event else {
                panic!()
            };
            let message = progress.message.unwrap();
            assert_eq!(
                (about.as_str(), error.public_message(), message.as_str()),
                (expected, expected, expected)
            );
        }
    }

    #[test]
    fn large_log_messages_are_dropped() {
        for (length, fits) in [(10, true), (11, false)] {
            let mut event = ReporterEvent::Log(LogMessage::new("info", string(length)));
            assert_eq!(scrub(UntrustedContent::Event(&mut event)).is_ok(), fits);
        }
    }

    #[test]
    fn rejects_large_input_requests() {
        for (length, fits) in [(9, true), (10, false)] {
            for kind in [
                InputRequestKind::Elicit(string(length)),
                InputRequestKind::Sample(string(length)),
            ] {
                let asks = vec![InputRequest {
                    key: "k".into(),
                    kind,
                }];
                let mut questions = InputRequests::new(asks);
                assert_eq!(
                    scrub(UntrustedContent::InputRequests(&mut questions)).is_ok(),
                    fits
                );
            }
        }
    }
}
