//! Other gateways of a shared store: who they are, and requests that only one of them can answer.
//!
//! - `members`: the gateways that live, with their addresses and config digests.
//! - `checkpoint_copies`: the checkpoints of all audit logs, for `toolgate audit verify --fleet`.
//! - `segment_copies`: the segments of the audit log, if the config says so. `copy_step` reads the next piece of one.
//! - `sessions`: the sessions of all gateways, so that another one continues them.
//! - `peer_client`, `peer_server`: forwarded requests, over TLS with certificates on both sides.
//! - `pki`: certificates of a private authority, for `toolgate store pki`.

mod checkpoint_copies;
mod copy_step;
mod members;
mod peer_client;
mod peer_server;
mod peer_tls;
pub(crate) mod pki;
mod router;
mod segment_copies;
mod sessions;

use checkpoint_copies::CheckpointCopies;
pub(crate) use checkpoint_copies::{CopiedCheckpoint, copied_checkpoints};
use members::FleetMembers;
use peer_client::PeerClient;
pub(crate) use peer_server::{ForwardedRequestHandler, PeerListener};
use peer_tls::PeerTls;
pub(crate) use router::{Forwarded, GatewayFleet};
pub(crate) use segment_copies::SegmentCopier;
use sessions::{FleetSessions, SessionRoute};
