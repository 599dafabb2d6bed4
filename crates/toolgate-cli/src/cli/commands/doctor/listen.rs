//! The listen address: free, or held by a gateway of this data directory.

use super::{CheckResult, DoctorContext, gateways::statuses};
use std::{io, net::TcpListener};

pub(super) fn check(context: &DoctorContext) -> Vec<CheckResult> {
    let Ok(config) = &context.config else {
        return Vec::new();
    };
    let address = config.listen;
    if address.port() == 0 {
        let text = format!("the gateway chooses a free port of {}", address.ip());
        return vec![CheckResult::ok("", text)];
    }
    let error = match TcpListener::bind(address) {
        Ok(_) => return vec![CheckResult::ok("", format!("{address} is free"))],
        Err(error) => error,
    };
    let ours = address.to_string();
    let held = statuses(context).is_some_and(|all| {
        all.iter()
            .any(|status| status["listen"].as_str() == Some(&ours))
    });
    vec![match error.kind() {
        io::ErrorKind::AddrInUse if held => {
            CheckResult::ok("", format!("the running gateway listens on {address}"))
        }
        io::ErrorKind::AddrInUse => CheckResult::problem(
            "",
            format!(
                "another program listens on {address}, or a gateway of another data directory; stop it, or choose another port with `listen` in the config or --listen {}:0",
                address.ip()
            ),
        ),
        io::ErrorKind::PermissionDenied => CheckResult::problem(
            "",
            format!(
                "you may not listen on {address}; choose a port above 1023 with `listen` in the config or --listen"
            ),
        ),
        io::ErrorKind::AddrNotAvailable => CheckResult::problem(
            "",
            format!(
                "no network interface has the address {}; correct `listen` in the config",
                address.ip()
            ),
        ),
        _ => CheckResult::problem(
            "",
            format!(
                "cannot listen on {address}: {error}; choose another address with `listen` in the config or --listen"
            ),
        ),
    }]
}
