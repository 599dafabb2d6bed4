//! Settings with a value for each server.

use std::collections::HashMap;

/// Setting with a default for all servers and overrides for some, by configured server id.
#[derive(Clone, Debug, Default)]
pub struct PerServer<T> {
    default: T,
    overrides: HashMap<String, T>,
}

impl<T: Copy> PerServer<T> {
    /// Creates a setting with the same value for all servers.
    pub fn all(default: T) -> PerServer<T> {
        PerServer {
            default,
            overrides: HashMap::new(),
        }
    }

    /// Overrides the setting's value for the server with this configured id.
    pub fn with(mut self, server: impl Into<String>, value: T) -> PerServer<T> {
        self.overrides.insert(server.into(), value);
        self
    }

    /// Returns the setting's value for the server with this configured id.
    pub fn of(&self, server: &str) -> T {
        self.overrides.get(server).copied().unwrap_or(self.default)
    }
}
