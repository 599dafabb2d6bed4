//! TLS of the gateway's own listener: certificate, private key, and their replacement while the gateway runs.
//!
//! - [`TlsIdentity`]: a certificate chain with its private key, read and checked.
//! - [`ListenerTls`]: the identity in force, and the handshakes of new connections.
//! - `certificate`: dates and names of a certificate.
//! - `hosts`: comparison of a certificate with the hosts of the config.
//! - `handshake`: bounds of a handshake, and the answer to a client that sends HTTP without TLS.

mod certificate;
mod handshake;
mod hosts;
mod identity;

pub(crate) use certificate::CertificateSummary;
pub(crate) use handshake::{HandshakeLimits, HandshakePermit, TlsHandshakes};
pub(crate) use hosts::host_mismatches;
pub(crate) use identity::TlsIdentity;

use crate::config::TlsSettings;
use rustls::ServerConfig;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// TLS of the listener: the identity in force. Connections keep the one with which they began.
pub(crate) struct ListenerTls {
    /// Configuration for new connections.
    active: RwLock<Arc<ServerConfig>>,
    certificate: Mutex<CertificateSummary>,
    settings: Mutex<TlsSettings>,
    /// Digest of the files of the identity in force.
    digest: Mutex<Vec<u8>>,
}

impl ListenerTls {
    /// Creates the TLS of a listener from an identity.
    pub(crate) fn new(settings: TlsSettings, identity: TlsIdentity) -> ListenerTls {
        ListenerTls {
            active: RwLock::new(identity.config),
            certificate: Mutex::new(identity.certificate),
            settings: Mutex::new(settings),
            digest: Mutex::new(identity.digest),
        }
    }

    /// Puts another identity in force for new connections.
    pub(crate) fn replace(&self, settings: TlsSettings, identity: TlsIdentity) {
        *self.active.write().unwrap_or_else(PoisonError::into_inner) = identity.config;
        *lock(&self.certificate) = identity.certificate;
        *lock(&self.settings) = settings;
        *lock(&self.digest) = identity.digest;
    }

    /// Returns whether an identity has the same content as the one in force.
    pub(crate) fn has_identity(&self, identity: &TlsIdentity) -> bool {
        *lock(&self.digest) == identity.digest
    }

    /// Returns the configuration for a new connection.
    fn server_config(&self) -> Arc<ServerConfig> {
        let active = self.active.read().unwrap_or_else(PoisonError::into_inner);
        active.clone()
    }

    /// Returns the summary of the certificate in force.
    pub(crate) fn certificate(&self) -> CertificateSummary {
        lock(&self.certificate).clone()
    }

    /// Returns the files of the identity in force.
    pub(crate) fn settings(&self) -> TlsSettings {
        lock(&self.settings).clone()
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
