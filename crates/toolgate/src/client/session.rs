//! What belongs to no call: whether the server is there, its log, our roots.

use super::{
    link::{Failure, Purpose},
    remote::Remote,
};
use tokio::time::timeout;
use toolgate_core::{Error, Kind};
use toolgate_wire::{
    json::{Json, ObjectWriter},
    method::{PING, SET_LEVEL, discover, notifications},
};

impl Remote {
    /// What the server said that it can do.
    pub fn capabilities(&self) -> &Json {
        &self.peer.capabilities
    }

    /// How a model should use the server, in the server's own words.
    pub fn instructions(&self) -> Option<&str> {
        self.peer.instructions.as_deref()
    }

    /// Whether the server answers: `ping`, or `server/discover` since 2026-07-28, which has no `ping`.
    ///
    /// # Errors
    /// It does not, within the time of a list.
    pub async fn ping(&self) -> Result<(), Error> {
        let method = match self.peer.dialect.stateless {
            true => discover::NAME,
            false => PING,
        };
        self.small(method, |_| {}).await
    }

    /// Asks for log messages from this level on, in the words of the protocol. Since 2026-07-28 each call asks for its own,
    /// by its [`Reporter`](toolgate_core::Reporter). A server that has no log is not asked.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub async fn set_log_level(&self, level: &str) -> Result<(), Error> {
        if self.peer.dialect.stateless || self.peer.capabilities.get("logging").is_none() {
            return Ok(());
        }
        self.small(SET_LEVEL, |o| o.str("level", level)).await
    }

    /// Says that the roots changed. Since 2026-07-28 nobody is told: a server asks when it needs them.
    pub fn roots_changed(&self) {
        if !self.peer.dialect.stateless {
            self.link.notify(notifications::ROOTS_CHANGED, None);
        }
    }

    async fn small(&self, method: &str, fill: impl FnOnce(&mut ObjectWriter)) -> Result<(), Error> {
        let params = |_: &_| {
            let mut o = ObjectWriter::new();
            self.stamp(&mut o);
            fill(&mut o);
            o.finish()
        };
        let asked = self.link.request(method, Purpose::List, params);
        match timeout(self.options.list, asked).await {
            Ok(Ok(_)) => Ok(()),
            // A server that does not know the method is there all the same.
            Ok(Err(Failure::Rpc(_))) if method == PING => Ok(()),
            Ok(Err(failure)) => Err(self.failed(failure)),
            Err(_) => Err(Error::new(
                Kind::Late,
                format!(
                    "the server {} did not answer within {:?}",
                    self.name(),
                    self.options.list
                ),
            )),
        }
    }
}
