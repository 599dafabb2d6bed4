//! The keyring of the operating system, if the config uses it.

use super::{CheckResult, DoctorContext};
use crate::{
    cli::{
        commands::{CommandError, explain::runtime},
        server_start::start_guardian,
    },
    config::{Config, ConfigValue, keyring::read_secret},
};
use std::time::Duration;

/// Maximum time of one read: a locked keyring asks for its password.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn check(context: &DoctorContext) -> Vec<CheckResult> {
    let Ok(config) = &context.config else {
        return Vec::new();
    };
    let uses = config.secret_uses();
    if !uses
        .iter()
        .any(|used| matches!(used.value, ConfigValue::Keyring(_)))
    {
        return Vec::new();
    }
    read_all(config).unwrap_or_else(|error| match error {
        CommandError::Usage(why) | CommandError::Failure(why) => {
            vec![CheckResult::problem("", why)]
        }
    })
}

fn read_all(config: &Config) -> Result<Vec<CheckResult>, CommandError> {
    let guardian = start_guardian()?;
    let runtime = runtime()?;
    let mut results = Vec::new();
    for used in config.secret_uses() {
        if !matches!(used.value, ConfigValue::Keyring(_)) {
            continue;
        }
        let subject = used.server.unwrap_or("gateway");
        let read = runtime.block_on(read_secret(used.value, &guardian, READ_TIMEOUT));
        results.push(match read {
            Ok(_) => CheckResult::ok(
                subject,
                format!(
                    "{} has its value from {}",
                    used.purpose,
                    used.value.describe_source()
                ),
            ),
            Err(why) => CheckResult::problem(
                subject,
                format!("the value for {} is missing: {why}", used.purpose),
            ),
        });
    }
    Ok(results)
}
