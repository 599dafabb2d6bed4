//! Notice after an edit of the config: running gateways reload it, or the operator types a command.

use super::super::{DataLocation, Result, unavailable};
use crate::{
    config::{Config, paths},
    operator::control::GatewaySockets,
};
use std::path::Path;
use toolgate_core::visible_line;

/// Returns a line for each running gateway of the data directory, or the command that starts one.
pub(super) fn text(place: &DataLocation<'_>, path: &Path, config: &Config) -> Result<String> {
    let data = place.data_with(config)?;
    // The lookup of gateways would create the directory.
    let gateways = match data.exists() {
        true => GatewaySockets::find_optional(&data)?,
        false => None,
    };
    let Some(gateways) = gateways else {
        return Ok(format!(
            "start the gateway with: toolgate{}\n",
            place.option_words()
        ));
    };
    let same = |file: &str| match (path.canonicalize(), Path::new(file).canonicalize()) {
        (Ok(one), Ok(two)) => one == two,
        _ => false,
    };
    let line = |status: &serde_json::Value| {
        let endpoint = visible_line(status["endpoint"].as_str().unwrap_or_default());
        match status["policy"]["file"].as_str() {
            Some(file) if same(file) => {
                format!(
                    "the running gateway ({endpoint}) reloads the config by itself within seconds; `toolgate status` shows the result\n"
                )
            }
            Some(file) => format!(
                "the running gateway ({endpoint}) uses another config, {}; start one with this config: toolgate{}\n",
                visible_line(file),
                config_words(place, path)
            ),
            None => format!(
                "the running gateway ({endpoint}) was started without a config; stop it, and start it again: toolgate{}\n",
                config_words(place, path)
            ),
        }
    };
    Ok(unavailable::statuses(&gateways).iter().map(line).collect())
}

/// Returns the options that start a gateway with the config.
fn config_words(place: &DataLocation<'_>, path: &Path) -> String {
    match paths::default_config_location().as_deref() == Some(path) {
        true => DataLocation {
            config: None,
            ..*place
        }
        .option_words(),
        false => place.option_words(),
    }
}
