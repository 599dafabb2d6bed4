//! Nested gateways: allowed up to a maximum depth.
//!
//! Each gateway passes the digests of its own config and of all outer gateways' configs to its servers, in an
//! environment variable. A gateway that finds its own digest there does not start.

use crate::config::ConfigSource;
use ring::digest::{SHA256, digest};
use toolgate_protocol::hex;

/// Environment variable with the digest of each gateway's config, the outermost first; `-` for a gateway without a
/// file.
const PARENTS_VARIABLE: &str = "TOOLGATE_PARENTS";
/// Maximum depth of nested gateways.
const MAX_NESTED_GATEWAYS: usize = 4;
/// Hex digits of a config's digest.
const DIGEST_HEX_DIGITS: usize = 16;

/// Returns the environment variable for the servers of a gateway.
pub(crate) fn server_variable(source: &ConfigSource) -> (String, String) {
    let above = std::env::var(PARENTS_VARIABLE).unwrap_or_default();
    (
        PARENTS_VARIABLE.to_owned(),
        append_digest(&above, &config_digest(source)),
    )
}

/// Rejects a gateway that is nested in itself or too deeply.
///
/// # Errors
/// The gateway is nested in itself or too deeply; the message says what to do.
pub(crate) fn check(source: &ConfigSource) -> Result<(), String> {
    check_behind(&std::env::var(PARENTS_VARIABLE).unwrap_or_default(), source)
}

fn check_behind(above: &str, source: &ConfigSource) -> Result<(), String> {
    let above: Vec<&str> = above.split(':').filter(|one| !one.is_empty()).collect();
    if let ConfigSource::File(file) = source
        && above.contains(&config_digest(source).as_str())
    {
        return Err(format!(
            "this gateway was started by a gateway with the same config, {}, and would start itself endlessly; remove the server that leads back to toolgate from that config",
            file.display()
        ));
    }
    if above.len() >= MAX_NESTED_GATEWAYS {
        return Err(format!(
            "this would be gateway {} in a chain of gateways that start each other, and at most {MAX_NESTED_GATEWAYS} are allowed; remove the server that leads back to toolgate, or use fewer gateways",
            above.len() + 1
        ));
    }
    Ok(())
}

fn append_digest(above: &str, own: &str) -> String {
    match above {
        "" => own.to_owned(),
        above => format!("{above}:{own}"),
    }
}

/// Returns a short digest of the config's path, so that servers do not learn the path.
fn config_digest(source: &ConfigSource) -> String {
    let ConfigSource::File(file) = source else {
        return "-".to_owned();
    };
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.clone());
    let digest = digest(&SHA256, file.as_os_str().as_encoded_bytes());
    let mut digits = hex::encode(digest.as_ref());
    digits.truncate(DIGEST_HEX_DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_the_same_config_again_and_more_than_a_few_gateways() {
        let (a, b) = (
            ConfigSource::File("/a.toml".into()),
            ConfigSource::File("/b.toml".into()),
        );
        let behind_a = append_digest("", &config_digest(&a));
        assert!(check_behind("", &a).is_ok());
        assert!(check_behind(&behind_a, &b).is_ok());
        let error = check_behind(&behind_a, &a).unwrap_err();
        assert!(error.contains("/a.toml"), "{error}");
        assert!(check_behind(&append_digest(&behind_a, &config_digest(&b)), &a).is_err());
        let single = config_digest(&ConfigSource::CommandLine);
        let mut above = String::new();
        for _ in 0..MAX_NESTED_GATEWAYS {
            assert!(
                check_behind(&above, &ConfigSource::CommandLine).is_ok(),
                "{above}"
            );
            above = append_digest(&above, &single);
        }
        assert!(check_behind(&above, &ConfigSource::CommandLine).is_err());
    }
}
