//! Sanitizer for images and audio: their data must match their MIME type.

pub(crate) mod base64;
mod sniff;
#[cfg(test)]
mod tests;

use crate::{PerServer, humanize};
use std::sync::Arc;
use toolgate_core::{
    Content, ContentKind, Error, Item, Json, Origin, Output, SanitizeContext, Sanitizer,
    UntrustedContent,
};
use toolgate_protocol::{json::ObjectWriter, placeholder};

/// Sanitizer that withholds images and audio that do not match their `mimeType`, are not Base64, or are too large. A
/// text block with the reason replaces each.
///
/// SVG images can hold scripts and are withheld too. Audio without a detectable format, such as raw PCM, needs the
/// check to be turned off for its server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MediaSanitizer {
    /// True to check images and audio, by server. Default: all servers.
    pub check: PerServer<bool>,
    /// Maximum length of one image or audio block as Base64, in bytes. Default: 8 MiB.
    pub max_base64_bytes: usize,
}

impl Default for MediaSanitizer {
    /// Checks all servers, with a limit of 8 MiB.
    fn default() -> MediaSanitizer {
        MediaSanitizer {
            check: PerServer::all(true),
            max_base64_bytes: 8 << 20,
        }
    }
}

impl Sanitizer for MediaSanitizer {
    fn name(&self) -> &'static str {
        "media"
    }

    fn sanitize(
        &self,
        from: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        self.work(from, value);
        Ok(())
    }

    fn sanitize_for_call(
        &self,
        asked: &SanitizeContext,
        from: Option<&Origin>,
        _: Option<&Arc<Item>>,
        value: UntrustedContent<'_>,
    ) -> Result<(), Error> {
        let withheld = self.work(from, value);
        if !withheld.is_empty() {
            asked
                .decision_log
                .add("media", "withhold", withheld.join("; "));
        }
        Ok(())
    }
}

/// Maximum number of reasons in the audit record of one result.
const MAX_MEDIA_REASONS: usize = 8;

impl MediaSanitizer {
    /// Withholds invalid blocks. Returns the reason for each.
    fn work(&self, from: Option<&Origin>, value: UntrustedContent<'_>) -> Vec<String> {
        let mut withheld = Vec::new();
        if from.is_some_and(|from| !self.check.of(&from.server)) {
            return withheld;
        }
        match value {
            UntrustedContent::Output(Output::Tool(result)) => {
                let blocks = result.content.iter_mut();
                withheld.extend(blocks.filter_map(|b| self.block(b)));
            }
            UntrustedContent::Output(Output::Prompt(result)) => {
                let blocks = result.messages.iter_mut().map(|m| &mut m.content);
                withheld.extend(blocks.filter_map(|b| self.block(b)));
            }
            UntrustedContent::Output(Output::Resource(result)) => {
                let parts = result.contents.iter_mut();
                withheld.extend(parts.filter_map(|part| self.part(part)));
            }
            // A completion is text. Definitions have no media except icons, which are links.
            UntrustedContent::Output(Output::Complete(_))
            | UntrustedContent::Instructions(_)
            | UntrustedContent::Error(_)
            | UntrustedContent::Event(_)
            | UntrustedContent::Item(_)
            | UntrustedContent::InputRequests(_) => {}
        }
        withheld.truncate(MAX_MEDIA_REASONS);
        withheld
    }

    fn block(&self, block: &mut Content) -> Option<String> {
        let (what, wrong) = match block.kind {
            ContentKind::Image => ("an image", self.judge(&block.json, "data", Some("image/"))),
            ContentKind::Audio => ("audio", self.judge(&block.json, "data", Some("audio/"))),
            ContentKind::Resource => {
                let mut part = block.json.get("resource")?;
                let why = self.part(&mut part)?;
                block.json = block.json.with("resource", &part);
                return Some(why);
            }
            ContentKind::Text | ContentKind::ResourceLink | ContentKind::Other => return None,
        };
        let why = format!("{what}: {}", wrong.err()?);
        *block = Content::text(&note(&why));
        Some(why)
    }

    /// Withholds a resource part if its blob is not Base64, or if it claims to be an image or audio and is not.
    fn part(&self, part: &mut Json) -> Option<String> {
        part.get("blob")?;
        let why = format!("a resource: {}", self.judge(part, "blob", None).err()?);
        let mut o = ObjectWriter::new();
        if let Some(uri) = part.get("uri") {
            o.raw("uri", &uri);
        }
        o.str("mimeType", "text/plain");
        o.str("text", &note(&why));
        *part = o.finish();
        Some(why)
    }

    fn judge(&self, json: &Json, member: &str, must: Option<&str>) -> Result<(), String> {
        let data = json.get(member);
        let Some(data) = data.as_ref().and_then(Json::str_cow) else {
            return Err(format!("its \"{member}\" is missing or not a string"));
        };
        if data.len() > self.max_base64_bytes {
            let (size, most) = (
                humanize::size(data.len()),
                humanize::size(self.max_base64_bytes),
            );
            return Err(format!(
                "its Base64 text is {size} long, but the limit is {most}, which the operator can raise"
            ));
        }
        let start = base64::decode_start(&data).ok_or("its data is not Base64")?;
        let said = json.get("mimeType").and_then(|m| m.string());
        let Some(said) = said else {
            return match must {
                Some(_) => Err("it has no MIME type".to_owned()),
                None => Ok(()),
            };
        };
        let said = said
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        match must {
            Some(family) if !said.starts_with(family) => Err(format!(
                "its MIME type is {}, but a block of this kind needs one that begins with {family}",
                humanize::printable(&said)
            )),
            None if !said.starts_with("image/") && !said.starts_with("audio/") => Ok(()),
            _ => sniff::check(&said, &start),
        }
    }
}

fn note(why: &str) -> String {
    placeholder::withheld(why)
}
