//! `initialize`: the handshake of the revisions up to 2025-11-25.

use crate::json::{Json, JsonKind, ObjectWriter};

/// Method name `initialize`, the handshake request.
pub const NAME: &str = "initialize";
/// Method name of the client's notification that completes the `initialize` handshake.
pub const INITIALIZED: &str = "notifications/initialized";

/// Self-reported name and version of a client or server (`clientInfo`, `serverInfo`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Implementation {
    /// Name of the program.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Title of the program for people (since 2025-06-18).
    pub title: Option<String>,
    /// Description of the program (since 2025-11-25).
    pub description: Option<String>,
    /// URL of the program's website (since 2025-11-25).
    pub website_url: Option<String>,
    /// Icons of the program, an array of objects with `src` (since 2025-11-25).
    pub icons: Option<Json>,
}

impl Implementation {
    /// Creates a `clientInfo` or `serverInfo` with a name and a version.
    pub fn new(name: &str, version: &str) -> Implementation {
        Implementation {
            name: name.to_owned(),
            version: version.to_owned(),
            ..Implementation::default()
        }
    }

    /// Reads `clientInfo` or `serverInfo`.
    pub fn read(json: &Json) -> Option<Implementation> {
        let json = json.index();
        let text = |key: &str| json.string(key);
        Some(Implementation {
            name: text("name")?,
            version: text("version").unwrap_or_default(),
            title: text("title"),
            description: text("description"),
            website_url: text("websiteUrl"),
            icons: json.get("icons").filter(|i| i.kind() == JsonKind::Array),
        })
    }

    /// Reads only name and version of `clientInfo` or `serverInfo`.
    pub fn read_name_and_version(json: &Json) -> Option<(String, String)> {
        let json = json.index();
        Some((
            json.string("name")?,
            json.string("version").unwrap_or_default(),
        ))
    }

    /// Writes the object `clientInfo` or `serverInfo`.
    pub fn json(&self) -> Json {
        let mut o = ObjectWriter::new();
        self.write(&mut o);
        o.finish()
    }

    /// Writes the members of `clientInfo` or `serverInfo` into an open object.
    pub fn write(&self, o: &mut ObjectWriter) {
        o.str("name", &self.name);
        o.str("version", &self.version);
        let more = [
            ("title", &self.title),
            ("description", &self.description),
            ("websiteUrl", &self.website_url),
        ];
        for (key, text) in more {
            if let Some(text) = text {
                o.str(key, text);
            }
        }
        if let Some(icons) = &self.icons {
            o.raw("icons", icons);
        }
    }
}

/// Parameters of `initialize`.
#[derive(Clone, Debug)]
pub struct InitializeParams {
    /// Protocol revision that the client requests.
    pub version: String,
    /// Client capabilities, an object.
    pub capabilities: Json,
    /// Self-reported name and version of the client.
    pub client: Option<Implementation>,
}

impl InitializeParams {
    /// Reads the parameters of `initialize`; `None` if the revision or the capabilities are missing.
    pub fn read(params: Option<&Json>) -> Option<InitializeParams> {
        let params = params?;
        Some(InitializeParams {
            version: params.get("protocolVersion")?.string()?,
            capabilities: params.get("capabilities")?,
            client: params
                .get("clientInfo")
                .as_ref()
                .and_then(Implementation::read),
        })
    }

    /// Writes the parameters of `initialize`.
    pub fn json(&self) -> Json {
        let mut o = ObjectWriter::new();
        o.str("protocolVersion", &self.version);
        o.raw("capabilities", &self.capabilities);
        if let Some(client) = &self.client {
            o.raw("clientInfo", &client.json());
        }
        o.finish()
    }
}

/// Result of `initialize`.
#[derive(Clone, Debug)]
pub struct InitializeResult {
    /// Negotiated protocol revision.
    pub version: String,
    /// Server capabilities, an object.
    pub capabilities: Json,
    /// Self-reported name and version of the server.
    pub server: Implementation,
    /// Instructions of the server for the model.
    pub instructions: Option<String>,
}

impl InitializeResult {
    /// Reads the result of `initialize`; `None` if a required member is missing.
    pub fn read(result: &Json) -> Option<InitializeResult> {
        InitializeResult::read_within(result, usize::MAX)
    }

    /// Reads the result of `initialize` with at most `max_instructions_bytes` bytes of the instructions. Copies no more
    /// than that.
    pub fn read_within(result: &Json, max_instructions_bytes: usize) -> Option<InitializeResult> {
        Some(InitializeResult {
            version: result.get("protocolVersion")?.string()?,
            capabilities: result.get("capabilities")?,
            server: result
                .get("serverInfo")
                .as_ref()
                .and_then(Implementation::read)?,
            instructions: result
                .get("instructions")
                .and_then(|i| i.string_up_to(max_instructions_bytes)),
        })
    }

    /// Writes the result of `initialize`.
    pub fn json(&self) -> Json {
        let mut o = ObjectWriter::new();
        o.str("protocolVersion", &self.version);
        o.raw("capabilities", &self.capabilities);
        o.raw("serverInfo", &self.server.json());
        if let Some(instructions) = &self.instructions {
            o.str("instructions", instructions);
        }
        o.finish()
    }
}
