//! `toolgate explain`: dry run of a call.

use super::{CommandError, DataLocation, Result, calls::DecisionStepOutput, print};
use crate::{
    args::ExplainOptions,
    authentication::http_caller_name,
    cli::history,
    cli::output::{OutputTable, TableColumn, print_json, read_answer},
    config::{Config, ConfigSource},
    operator::control::GatewaySockets,
    runtime::dry_run::{ExplainRequest, scope_phrase},
    runtime::offline::{DefinitionChoice, OfflineView},
    runtime::stated_caller::StatedCaller,
    runtime::store_location::StoreLocation,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};
use toolgate_core::{visible, visible_line};

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
    let dir = audit_directory(data)?;
    let tally = runtime()?.block_on(async {
        let stored = OfflineView::open(config, data, DefinitionChoice::Accepted).await?;
        let judged = history::evaluate_history(&dir, &which, &stored).await;
        judged.map_err(|error| unreadable_log(&dir, &error))
    });
    let output = tally?.output(from);
    match wanted.json.json {
        true => print_json(&output),
        false => print(&output.text()),
    }
}

/// Returns the directory of the audit log, if there is one.
pub(super) fn audit_directory(data: &Path) -> Result<PathBuf> {
    let directory = data.join("audit");
    match directory.is_dir() {
        true => Ok(directory),
        false => Err(CommandError::Failure(format!(
            "there is no audit log in {}; name the data directory with --data",
            directory.display()
        ))),
    }
}

/// Returns the error for an audit log that cannot be read.
pub(super) fn unreadable_log(directory: &Path, error: &io::Error) -> String {
    format!(
        "cannot read the audit log in {}: {error}; check the directory and its permissions",
        directory.display()
    )
}

pub(super) fn source(config: &Config) -> String {
    match &config.source {
        ConfigSource::File(path) => path.display().to_string(),
        ConfigSource::BuiltIn | ConfigSource::CommandLine => "the built-in config".to_owned(),
    }
}

/// Returns the caller that the options state.
fn stated_caller(wanted: &ExplainOptions) -> StatedCaller {
    StatedCaller {
        name: wanted.caller.clone(),
        view: wanted.view.clone(),
        attributes: wanted.attributes.attributes(),
    }
}

fn explain_live(gateways: &GatewaySockets, wanted: &ExplainOptions) -> Result<ExitCode> {
    let text = wanted.arguments.as_deref().unwrap_or("{}");
    let mut with = json!({"tool": wanted.tool, "text": text});
    stated_caller(wanted).write(&mut with);
    let way = gateways.request_any("explain", &with)?;
    if let Some(why) = way["no_caller"].as_str() {
        return Err(CommandError::Usage(why.to_owned()));
    }
    DryRunOutput::print(way, "according to a running gateway", wanted.json.json)
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
    if let Some(name) = &wanted.caller {
        let checked = config.auth.check_caller_name(name);
        checked.map_err(CommandError::Usage)?;
    }
    let anonymous = http_caller_name(config.token.is_some());
    let location = StoreLocation::of(&config, data).map_err(CommandError::Failure)?;
    let caller = stated_caller(wanted).caller(anonymous, |name| {
        super::keys::stored_attributes(&location, name)
    });
    let asked = ExplainRequest::parse(tool, caller, wanted.arguments.as_deref())?;
    let runtime = runtime()?;
    let way = runtime.block_on(async {
        let stored = OfflineView::open(config, data, DefinitionChoice::Latest).await?;
        stored.explain(asked).await
    });
    let way = way.map_err(|why| CommandError::Failure(format!("{why} ({from})")))?;
    DryRunOutput::print(way, &from, wanted.json.json)
}

/// Dry run of a call.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct DryRunOutput {
    /// `allow`, `ask`, `deny` or `hide`.
    #[serde(rename(deserialize = "verdict"))]
    decision: String,
    /// Steps that lead to the decision, in their order.
    steps: Vec<DecisionStepOutput>,
    /// Scopes that the caller's token needs.
    #[serde(rename(deserialize = "scopes"))]
    required_scopes: Vec<String>,
    /// Source of the config and the definitions.
    source: String,
}

impl DryRunOutput {
    fn print(answer: Value, source: &str, json: bool) -> Result<ExitCode> {
        let output = DryRunOutput {
            source: source.to_owned(),
            ..read_answer(answer)?
        };
        match json {
            true => print_json(&output),
            false => print(&output.text()),
        }
    }

    /// Formats one line per step. The last line names the source.
    fn text(&self) -> String {
        let mut table =
            OutputTable::new(&[TableColumn::Whole, TableColumn::State, TableColumn::Wrap]);
        for step in &self.steps {
            table.add([&step.by, &step.decision, &step.reason].map(|cell| visible_line(cell)));
        }
        let needs = match self.required_scopes.is_empty() {
            true => String::new(),
            false => {
                let scopes = visible_line(&scope_phrase(&self.required_scopes));
                format!(", if the token has {scopes}")
            }
        };
        table.add_line(format!(
            "decision: {}{needs} ({}; nothing was called)",
            visible(&self.decision),
            self.source
        ));
        table.text()
    }
}

/// Creates the runtime that evaluates the policy.
pub(in crate::cli) fn runtime() -> Result<tokio::runtime::Runtime> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    Ok(runtime.enable_all().build().map_err(|e| e.to_string())?)
}
