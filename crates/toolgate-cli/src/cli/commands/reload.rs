//! `toolgate reload`: config reload of the running gateways.

use super::{CommandError, Result, print};
use crate::cli::progress::ProgressLine;
use crate::operator::control::{ControlResponse, GatewaySockets};
use serde_json::json;
use std::process::ExitCode;
use toolgate_core::visible;

/// Reloads all gateways of a data directory. Fails if one of them rejects its config.
pub(super) fn run(gateways: &GatewaySockets) -> Result<ExitCode> {
    let mut refused = Vec::new();
    let progress = ProgressLine::start("Reloading the config");
    let answers = gateways.request_all("reload", &json!({}));
    drop(progress);
    for answer in answers? {
        match answer {
            ControlResponse::Ok(status) => {
                for note in status["notes"].as_array().into_iter().flatten() {
                    eprintln!("toolgate: {}", visible(note.as_str().unwrap_or_default()));
                }
                let hash = status["hash"].as_str().unwrap_or_default();
                print(&format!("active config: {}\n", visible(hash)))?;
            }
            ControlResponse::Unknown(why) | ControlResponse::Refused(why) => refused.push(why),
        }
    }
    match refused.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Err(CommandError::Failure(format!(
            "the config was not reloaded, and the previous one stays active: {}",
            refused.join("; ")
        ))),
    }
}
