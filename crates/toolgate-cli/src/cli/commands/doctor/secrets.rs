//! The environment variables and files of which the config takes secrets.

use super::{CheckResult, DoctorContext};
use crate::{
    cli::server_requirements::UnmetRequirements,
    config::{ConfigValue, SecretUse},
};

pub(super) fn check(context: &DoctorContext) -> Vec<CheckResult> {
    let Ok(config) = &context.config else {
        return Vec::new();
    };
    let result = |used: SecretUse<'_>| {
        let subject = used.server.unwrap_or("gateway");
        match used.value {
            // The keyring has a check of its own.
            ConfigValue::Plaintext(_) | ConfigValue::Keyring(_) => None,
            value => Some(match value.read() {
                Ok(_) => CheckResult::ok(
                    subject,
                    format!(
                        "{} has its value from {}",
                        used.purpose,
                        value.describe_source()
                    ),
                ),
                Err(why) => CheckResult::problem(
                    subject,
                    format!("the value for {} cannot be read: {why}", used.purpose),
                ),
            }),
        }
    };
    let mut results: Vec<_> = config
        .secret_uses()
        .into_iter()
        .filter_map(result)
        .collect();
    for server in &config.servers {
        let unset = UnmetRequirements::of(server).unset;
        results.extend(unset.iter().map(|name| {
            CheckResult::warning(&server.id, format!("{name} of its env_pass is not set in this environment; set it, or remove it from the list"))
        }));
    }
    results
}
