//! A server over HTTP, played by hand: what goes over the wire, and what comes of it.

mod credentials;
mod edge;
mod mirrored;
mod old;
mod opening;
mod parked;
mod posts;
mod server;
mod sessions;
mod streams;
mod unusable;
