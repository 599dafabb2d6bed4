//! Settings with a value for each server.

/// Setting with a default for all servers and overrides for some, by configured server id.
#[derive(Clone, Debug, Default)]
pub struct PerServer<T> {
    default: T,
    /// Servers with a value of their own, sorted. One list of names and one of values compile to less code for each type
    /// than a map.
    servers: Vec<String>,
    overrides: Vec<T>,
}

impl<T: Copy> PerServer<T> {
    /// Creates a setting with the same value for all servers.
    pub fn all(default: T) -> PerServer<T> {
        PerServer {
            default,
            servers: Vec::new(),
            overrides: Vec::new(),
        }
    }

    /// Overrides the setting's value for the server with this configured id.
    pub fn with(mut self, server: impl Into<String>, value: T) -> PerServer<T> {
        let server = server.into();
        match self.servers.binary_search(&server) {
            Ok(at) => self.overrides[at] = value,
            Err(at) => {
                self.servers.insert(at, server);
                self.overrides.insert(at, value);
            }
        }
        self
    }

    /// Returns the setting's value for the server with this configured id.
    pub fn of(&self, server: &str) -> T {
        let at = self.servers.binary_search_by(|id| id.as_str().cmp(server));
        at.map_or(self.default, |at| self.overrides[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_override_of_a_server_holds() {
        let setting = PerServer::all(0)
            .with("mail", 1)
            .with("files", 2)
            .with("web", 3)
            .with("files", 4);
        let values = ["files", "mail", "web", "other", ""].map(|server| setting.of(server));
        assert_eq!(values, [4, 1, 3, 0, 0]);
    }
}
