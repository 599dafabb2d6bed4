//! The certificate of the listener: its files, its dates, and its names.

use super::{CheckResult, DoctorContext};
use crate::tls::{TlsIdentity, host_mismatches};
use std::time::SystemTime;

pub(super) fn check(context: &DoctorContext) -> Vec<CheckResult> {
    let Ok(config) = &context.config else {
        return Vec::new();
    };
    let Some(settings) = &config.tls else {
        return Vec::new();
    };
    let certificate = match TlsIdentity::load(settings) {
        Ok(identity) => identity.certificate,
        Err(why) => return vec![CheckResult::problem("", why)],
    };
    let (now, file) = (SystemTime::now(), settings.cert.display());
    let dates = match (certificate.date_error(now), certificate.expiry_warning(now)) {
        (Some(error), _) => CheckResult::problem(
            "",
            format!("{file}: {error}; renew it, then run: toolgate reload"),
        ),
        (None, Some(warning)) => {
            CheckResult::warning("", format!("{file}: {warning}; renew it before"))
        }
        (None, None) => CheckResult::ok(
            "",
            format!(
                "the certificate for {} is valid, and the key belongs to it",
                certificate.names.join(", ")
            ),
        ),
    };
    let mismatches = host_mismatches(config, &certificate);
    let mismatches = mismatches.into_iter();
    [dates]
        .into_iter()
        .chain(mismatches.map(|why| CheckResult::warning("", why)))
        .collect()
}
