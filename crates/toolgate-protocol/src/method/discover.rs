//! `server/discover`: supported revisions and capabilities of a server (2026-07-28).

use super::{initialize::Implementation, meta};
use crate::json::{Json, ObjectWriter};

/// Method name `server/discover`, which returns the revisions and capabilities of a server.
pub const NAME: &str = "server/discover";

/// Result of discovery by `server/discover`.
#[derive(Clone, Debug)]
pub struct DiscoverResult {
    /// Protocol revisions that the server supports.
    pub versions: Vec<String>,
    /// Server capabilities, an object.
    pub capabilities: Json,
    /// Self-reported name and version of the server.
    pub server: Option<Implementation>,
    /// Instructions of the server for the model.
    pub instructions: Option<String>,
}

impl DiscoverResult {
    /// Reads the result of `server/discover`; `None` if it is invalid.
    pub fn read(result: &Json) -> Option<DiscoverResult> {
        DiscoverResult::read_within(result, usize::MAX)
    }

    /// Reads the result of `server/discover` with at most `max_instructions_bytes` bytes of the instructions. Copies no
    /// more than that.
    pub fn read_within(result: &Json, max_instructions_bytes: usize) -> Option<DiscoverResult> {
        let versions = result.get("supportedVersions")?;
        Some(DiscoverResult {
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

    /// Writes the result of `server/discover`, stale at once and private to this caller.
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
