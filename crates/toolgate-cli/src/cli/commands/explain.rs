//! `toolgate explain`: dry run of a call.

use super::{CommandError, DataLocation, Result, print};
use crate::{
    args::ExplainOptions,
    authentication::http_caller_name,
    cli::history,
    config::{Config, ConfigSource},
    operator::control::GatewaySockets,
    runtime::dry_run::{self, ExplainRequest},
    runtime::offline::{DefinitionChoice, OfflineView},
};
use serde_json::json;
use std::{path::Path, process::ExitCode, time::Duration};
use toolgate::Caller;

/// Asks the running gateways; the first that knows the tool answers. If none runs, or if another config is given, uses
/// the
/// config and the stored definitions.
pub(super) fn run(place: &DataLocation<'_>, wanted: &ExplainOptions) -> Result<ExitCode> {
    if place.config.is_none() && wanted.history.is_none() {
        let data = place.data()?;
        // Only look for gateways in an existing directory: the lookup creates the directory of their sockets.
        let gateways = data
            .is_dir()
            .then(|| GatewaySockets::find_optional(&data))
            .transpose()?;
        if let Some(gateways) = gateways.flatten() {
            return explain_live(&gateways, wanted);
        }
    }
    let config = place.config()?;
    let data = place.data_with(&config)?;
    match (wanted.history, &wanted.tool) {
        (Some(back), _) => explain_history(config, &data, wanted, back),
        (None, Some(tool)) => explain_stored(config, &data, wanted, tool),
        (None, None) => Err(CommandError::Usage(
            "name a tool, or pass --history".to_owned(),
        )),
    }
}

/// Evaluates the recorded calls of a period under a config.
fn explain_history(
    config: Config,
    data: &Path,
    wanted: &ExplainOptions,
    back: Duration,
) -> Result<ExitCode> {
    let from = source(&config);
    let which = history::HistoryFilter {
        since: super::audit::period_start(back),
        tool: wanted.tool.as_deref(),
        caller: wanted.caller.as_deref(),
    };
    let dir = data.join("audit");
    if !dir.is_dir() {
        return Err(CommandError::Failure(format!(
            "there is no audit log in {}; name the data directory with --data",
            dir.display()
        )));
    }
    let tally = runtime()?.block_on(async {
        let stored = OfflineView::open(config, data, DefinitionChoice::Accepted).await?;
        let judged = history::evaluate_history(&dir, &which, &stored).await;
        judged.map_err(|e| {
            format!(
                "cannot read the audit log in {}: {e}; check the directory and its permissions",
                dir.display()
            )
        })
    });
    print(&format!(
        "{}\nevaluated with {from}; nothing was called\n",
        tally?.text()
    ))
}

pub(super) fn source(config: &Config) -> String {
    match &config.source {
        ConfigSource::File(path) => path.display().to_string(),
        ConfigSource::BuiltIn | ConfigSource::CommandLine => "the built-in config".to_owned(),
    }
}

fn explain_live(gateways: &GatewaySockets, wanted: &ExplainOptions) -> Result<ExitCode> {
    let text = wanted.arguments.as_deref().unwrap_or("{}");
    let with = json!({"tool": wanted.tool, "caller": wanted.caller, "text": text});
    let way = gateways.request_any("explain", &with)?;
    if let Some(why) = way["no_caller"].as_str() {
        return Err(CommandError::Usage(why.to_owned()));
    }
    print(&dry_run::render(&way, "according to a running gateway"))
}

fn explain_stored(
    config: Config,
    data: &Path,
    wanted: &ExplainOptions,
    tool: &str,
) -> Result<ExitCode> {
    let from = source(&config);
    let from = format!(
        "from {from} and the definitions stored in {}; no gateway was contacted",
        data.display()
    );
    let caller = match &wanted.caller {
        Some(caller) => Caller::new(caller.as_str()),
        None => Caller::new(http_caller_name(config.token.is_some())),
    };
    if wanted.caller.is_some() {
        config
            .auth
            .check_caller_name(caller.name())
            .map_err(CommandError::Usage)?;
    }
    let asked = ExplainRequest::parse(tool, caller, wanted.arguments.as_deref())?;
    let runtime = runtime()?;
    let way = runtime.block_on(async {
        let stored = OfflineView::open(config, data, DefinitionChoice::Latest).await?;
        stored.explain(asked).await
    });
    let way = way.map_err(|why| CommandError::Failure(format!("{why} ({from})")))?;
    print(&dry_run::render(&way, &from))
}

/// Creates the runtime that evaluates the policy.
pub(in crate::cli) fn runtime() -> Result<tokio::runtime::Runtime> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    Ok(runtime.enable_all().build().map_err(|e| e.to_string())?)
}
