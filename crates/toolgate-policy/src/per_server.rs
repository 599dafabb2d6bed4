//! A setting that each server may have its own way.

use std::collections::HashMap;

/// A setting with a value for all servers and others for some.
#[derive(Clone, Debug, Default)]
pub struct PerServer<T> {
    default: T,
    own: HashMap<String, T>,
}

impl<T: Copy> PerServer<T> {
    /// The same value for all.
    pub fn all(default: T) -> PerServer<T> {
        PerServer {
            default,
            own: HashMap::new(),
        }
    }

    /// Another value for the server of that configured id.
    pub fn with(mut self, server: impl Into<String>, value: T) -> PerServer<T> {
        self.own.insert(server.into(), value);
        self
    }

    /// The value for a server.
    pub fn of(&self, server: &str) -> T {
        self.own.get(server).copied().unwrap_or(self.default)
    }
}
