//! `server/discover`: what a server speaks and can do (2026-07-28).

use super::{initialize::Implementation, meta};
use crate::json::{Json, ObjectWriter};

/// The method.
pub const NAME: &str = "server/discover";

/// What a server says of itself.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The revisions it speaks.
    pub versions: Vec<String>,
    /// What it can do.
    pub capabilities: Json,
    /// Who it says it is.
    pub server: Option<Implementation>,
    /// How the model should use it.
    pub instructions: Option<String>,
}

impl Answer {
    /// Reads the result; `None` where it is none.
    pub fn read(result: &Json) -> Option<Answer> {
        Answer::read_within(result, usize::MAX)
    }

    /// The same, with at most so many bytes of the instructions. No more of them is copied.
    pub fn read_within(result: &Json, max_instructions_bytes: usize) -> Option<Answer> {
        let versions = result.get("supportedVersions")?;
        Some(Answer {
            versions: versions.items().filter_map(|v| v.string()).collect(),
            capabilities: result.get("capabilities")?,
            server: result
                .get("_meta")
                .and_then(|m| m.get(meta::SERVER))
                .as_ref()
                .and_then(Implementation::read),
            instructions: result
                .get("instructions")
                .and_then(|i| i.string_up_to(max_instructions_bytes)),
        })
    }

    /// Writes it, stale at once and for this caller only.
    pub fn json(&self) -> Json {
        let mut o = ObjectWriter::new();
        o.str("resultType", "complete");
        o.array("supportedVersions", |a| {
            self.versions.iter().for_each(|v| a.str(v))
        });
        o.raw("capabilities", &self.capabilities);
        if let Some(instructions) = &self.instructions {
            o.str("instructions", instructions);
        }
        o.int("ttlMs", 0);
        o.str("cacheScope", "private");
        if let Some(server) = &self.server {
            o.object("_meta", |m| m.raw(meta::SERVER, &server.json()));
        }
        o.finish()
    }
}
