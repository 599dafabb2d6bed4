//! `initialize`: the handshake of the revisions up to 2025-11-25.

use crate::json::{Json, Kind, ObjectWriter};

/// The method.
pub const NAME: &str = "initialize";
/// The client's word that the handshake is over.
pub const DONE: &str = "notifications/initialized";

/// Name and version of a program, as it says itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Implementation {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What people call it (since 2025-06-18).
    pub title: Option<String>,
    /// What it is (since 2025-11-25).
    pub description: Option<String>,
    /// Where people read more (since 2025-11-25).
    pub website: Option<String>,
    /// Its icons, an array of objects with `src` (since 2025-11-25).
    pub icons: Option<Json>,
}

impl Implementation {
    /// A program of that name and version.
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
            website: text("websiteUrl"),
            icons: json.get("icons").filter(|i| i.kind() == Kind::Array),
        })
    }

    /// Only name and version of `clientInfo` or `serverInfo`.
    pub fn named(json: &Json) -> Option<(String, String)> {
        let json = json.index();
        Some((
            json.string("name")?,
            json.string("version").unwrap_or_default(),
        ))
    }

    /// Writes it.
    pub fn json(&self) -> Json {
        let mut o = ObjectWriter::new();
        self.write(&mut o);
        o.finish()
    }

    /// Writes its members.
    pub fn write(&self, o: &mut ObjectWriter) {
        o.str("name", &self.name);
        o.str("version", &self.version);
        let more = [
            ("title", &self.title),
            ("description", &self.description),
            ("websiteUrl", &self.website),
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

/// What the client opens with.
#[derive(Clone, Debug)]
pub struct Params {
    /// The revision it would like.
    pub version: String,
    /// What it can do.
    pub capabilities: Json,
    /// Who it says it is.
    pub client: Option<Implementation>,
}

impl Params {
    /// Reads the parameters; `None` where the revision or the capabilities are missing.
    pub fn read(params: Option<&Json>) -> Option<Params> {
        let params = params?;
        Some(Params {
            version: params.get("protocolVersion")?.string()?,
            capabilities: params.get("capabilities")?,
            client: params
                .get("clientInfo")
                .as_ref()
                .and_then(Implementation::read),
        })
    }

    /// Writes them.
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

/// What the server answers.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The revision to speak.
    pub version: String,
    /// What the server can do.
    pub capabilities: Json,
    /// Who it says it is.
    pub server: Implementation,
    /// How the model should use it.
    pub instructions: Option<String>,
}

impl Answer {
    /// Reads the result; `None` where a part that is required is missing.
    pub fn read(result: &Json) -> Option<Answer> {
        Answer::read_within(result, usize::MAX)
    }

    /// The same, with at most so many bytes of the instructions. No more of them is copied.
    pub fn read_within(result: &Json, max_instructions_bytes: usize) -> Option<Answer> {
        Some(Answer {
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

    /// Writes it.
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
