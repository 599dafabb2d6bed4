//! Short messages between gateways, over `NOTIFY`. Each arrives at most once, and none is stored.

use tokio::sync::{broadcast, mpsc};

/// Channel of the messages.
pub(super) const MESSAGE_CHANNEL: &str = "toolgate_messages";
/// Maximum size of a message in bytes. PostgreSQL allows fewer than 8,000.
const MAX_MESSAGE_BYTES: usize = 7_000;
/// Maximum number of messages that wait for the database, or for their reader.
const MAX_QUEUED_MESSAGES: usize = 1024;

/// Sender of short messages to all gateways that share the database, also to this one.
#[derive(Clone, Debug)]
pub struct MessageSender(mpsc::Sender<String>);

impl MessageSender {
    /// Sends a message if the database is there and the queue has space. Otherwise it is lost.
    pub fn send(&self, message: String) {
        if message.len() <= MAX_MESSAGE_BYTES {
            // Messages of this kind may be lost.
            let _ = self.0.try_send(message);
        }
    }
}

/// Both ends of the messages of a gateway.
pub(super) struct MessageQueues {
    pub(super) sender: MessageSender,
    pub(super) outgoing: mpsc::Receiver<String>,
    pub(super) incoming: broadcast::Sender<String>,
}

impl MessageQueues {
    pub(super) fn new() -> MessageQueues {
        let (sender, outgoing) = mpsc::channel(MAX_QUEUED_MESSAGES);
        MessageQueues {
            sender: MessageSender(sender),
            outgoing,
            incoming: broadcast::Sender::new(MAX_QUEUED_MESSAGES),
        }
    }
}
