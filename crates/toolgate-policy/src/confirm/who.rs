//! Who decided: a channel, and the person as far as that channel knows him.

use serde_json::{Value, json};
use std::{fmt, sync::Arc};
use toolgate_core::Caller;

/// On which channel a person decided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum By {
    /// The console.
    Console,
    /// The command line.
    Terminal,
    /// The caller's own client: its agent may have answered for its user.
    Client,
}

impl By {
    /// The word of the record.
    pub fn as_str(self) -> &'static str {
        match self {
            By::Console => "console",
            By::Terminal => "terminal",
            By::Client => "client",
        }
    }

    fn read(word: &str) -> Option<By> {
        let all = [By::Console, By::Terminal, By::Client];
        all.into_iter().find(|by| by.as_str() == word)
    }
}

/// Who decided. The name is only as good as the channel: see `docs/approvals.md`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Who {
    /// On which channel.
    pub by: By,
    /// What the channel knows of the person: the user of a terminal, the label of a console login.
    pub name: Option<Arc<str>>,
    /// Whether this is whoever owns the gateway: calls of his own carry no name.
    pub owner: bool,
}

impl Who {
    /// A person whom the channel knows.
    pub fn named(by: By, name: impl Into<Arc<str>>) -> Who {
        Who {
            by,
            name: Some(name.into()),
            owner: false,
        }
    }

    /// Whether these are one person, as far as anybody can tell: one name, or one channel that knows none.
    pub(super) fn is(&self, other: &Who) -> bool {
        match (&self.name, &other.name) {
            (Some(one), Some(other)) => one == other,
            // Somebody without a name may be anybody.
            _ => true,
        }
    }

    /// Whether this person made the call: the operator's own calls and keys carry names. The owner may approve what he
    /// calls himself from a terminal or the console, unless several persons have to.
    pub(super) fn made(&self, caller: &Caller, needs: u32) -> bool {
        let Some(name) = &self.name else {
            return false;
        };
        let caller = caller.name();
        if self.owner && matches!(caller, "operator@terminal" | "operator@console") {
            return needs > 1;
        }
        let named = |prefix| caller.strip_prefix(prefix).is_some_and(|n| *n == **name);
        named("operator@") || named("key:") || caller == &**name
    }

    pub(super) fn json(&self) -> Value {
        json!({"by": self.by.as_str(), "name": self.name.as_deref(), "owner": self.owner})
    }

    pub(super) fn read(value: &Value) -> Option<Who> {
        let by = By::read(value.get("by")?.as_str()?)?;
        let name = match value.get("name")? {
            Value::Null => None,
            name => Some(name.as_str()?.into()),
        };
        let owner = value.get("owner")?.as_bool()?;
        Some(Who { by, name, owner })
    }
}

impl From<By> for Who {
    fn from(by: By) -> Who {
        Who {
            by,
            name: None,
            owner: false,
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("a person");
        write!(f, "{name} ({})", self.by.as_str())
    }
}
