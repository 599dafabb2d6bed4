//! Reload of the listener's certificate: with the config, and when one of its files changes.

use super::ConfigReloader;
use crate::{
    config::{Config, TlsSettings},
    event_log::{self, GatewayEvent},
    timestamp::millis,
    tls::{CertificateSummary, ListenerTls, TlsIdentity},
};
use std::time::SystemTime;
use toolgate_journal::{AuditEntry, AuditEvent};
use toolgate_policy::sanitize_entry;

/// New identity of the listener, ready to be put in force.
pub(super) struct NewIdentity {
    settings: TlsSettings,
    identity: TlsIdentity,
}

impl ConfigReloader {
    /// Reads the identity that a config names; `None` if it is already in force, or the listener has no TLS.
    ///
    /// # Errors
    /// The files cannot be used, or clients would reject the certificate; the message says why.
    pub(super) fn read_identity(&self, config: &Config) -> Result<Option<NewIdentity>, String> {
        match (&self.resources.tls, &config.tls) {
            (Some(tls), Some(settings)) => read_identity(tls, settings),
            // `start_only` reports that the listener gets or loses TLS at the next start.
            _ => Ok(None),
        }
    }

    /// Puts an identity in force for new connections, and records it.
    pub(super) fn activate_identity(&self, new: NewIdentity) {
        let Some(tls) = &self.resources.tls else {
            return;
        };
        tls.replace(new.settings, new.identity);
        let certificate = tls.certificate();
        self.record(certificate_record("taken", &certificate));
        event_log::emit(GatewayEvent::CertificateReloaded {
            names: certificate.names,
            not_after: certificate.not_after,
        });
    }

    /// Reads the files of the certificate again after one of them has changed. The previous identity stays in force if
    /// the new one cannot be used.
    pub(super) fn reload_certificate(&self) {
        let Some(tls) = &self.resources.tls else {
            return;
        };
        match read_identity(tls, &tls.settings()) {
            Ok(None) => {}
            Ok(Some(new)) => self.activate_identity(new),
            Err(why) => {
                let entry = certificate_record("refused", &tls.certificate());
                self.record(entry.with("why", why.as_str()));
                event_log::emit(GatewayEvent::CertificateRefused { why });
            }
        }
    }

    fn record(&self, entry: AuditEntry) {
        if let Some(journal) = self.resources.backends.recorder.journal() {
            // An unhealthy journal is reported elsewhere.
            let _ = journal.enqueue(sanitize_entry(entry));
        }
    }
}

fn read_identity(tls: &ListenerTls, settings: &TlsSettings) -> Result<Option<NewIdentity>, String> {
    let identity = TlsIdentity::load(settings)?;
    if tls.has_identity(&identity) {
        return Ok(None);
    }
    // A certificate in force that has expired does not prevent a reload of the rest, but a new one has to be valid.
    match identity.certificate.date_error(SystemTime::now()) {
        Some(why) => Err(format!(
            "cert in [tls]: {}: {why}; write a certificate that is valid now",
            settings.cert.display()
        )),
        None => Ok(Some(NewIdentity {
            settings: settings.clone(),
            identity,
        })),
    }
}

/// Builds the audit record of a certificate: the one in force after a reload.
fn certificate_record(verdict: &'static str, certificate: &CertificateSummary) -> AuditEntry {
    AuditEntry::new(AuditEvent::from("tls.certificate"))
        .with("verdict", verdict)
        .with("sha256", certificate.fingerprint.as_str())
        .with("not_after", millis(certificate.not_after))
}
