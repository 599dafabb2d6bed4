//! First start of imported servers: pins their definitions, and predicts how the rules decide about their tools.

use super::super::{CommandError, DataLocation, Result, check::join_names, explain, offline};
use crate::{
    authentication::http_caller_name,
    cli::server_start::start_and_list,
    config::{Config, ConfigRule},
    runtime::{
        self,
        call_feed::CallFeed,
        compose,
        dry_run::{self, ExplainRequest},
        offline::{DefinitionChoice, OfflineView},
        snapshot::PolicyBackends,
        store_location::StoreLocation,
    },
    serve,
    servers::{ServerState, ServerStatus},
};
use std::{path::Path, sync::Arc, time::SystemTime};
use toolgate_core::{Caller, DecisionStep, Item, ItemKind, PredictedOutcome, visible_line};
use toolgate_guardian::Guardian;
use toolgate_journal::AuditJournal;
use toolgate_policy::{
    ApprovalService, AuditRecorder, GlobPattern, StateStore, pins::hidden_reason,
};
use toolgate_protocol::plural::count_of;

/// Lines of stderr to show of a server that did not start.
const MAX_SHOWN_STDERR_LINES: usize = 5;

/// Policy that checks the arguments of a call.
const ARGUMENT_POLICY: &str = "arguments";

/// Starts the servers of a config once, and returns a summary.
pub(super) fn run(place: &DataLocation<'_>, config: Config, guardian: Guardian) -> Result<String> {
    let data = place.data_with(&config)?;
    serve::make_private(&data).map_err(|error| {
        format!(
            "cannot use the data directory {}: {error}; correct its permissions, or choose another with --data DIR",
            data.display()
        )
    })?;
    let count = count_of(config.servers.len() as u64, "server");
    let longest = compose::longest_start(&config).as_secs();
    eprintln!("toolgate: starting {count} once, for at most {longest} s");
    let location = StoreLocation::of(&config, &data).map_err(CommandError::Failure)?;
    let store = offline::state(&location)?;
    let journal = Arc::new(offline::journal(place, &data)?);
    let runtime = explain::runtime()?;
    let summary = runtime.block_on(async {
        let statuses = pin_definitions(&config, &data, guardian, (store, &journal)).await?;
        summary(&config, &data, &statuses).await
    });
    runtime.shutdown_background();
    journal.close();
    Ok(summary?)
}

/// Starts the servers, lists their items through the pins, and stops them.
async fn pin_definitions(
    config: &Config,
    data: &Path,
    guardian: Guardian,
    (store, journal): (Arc<dyn StateStore>, &Arc<AuditJournal>),
) -> std::result::Result<Vec<ServerStatus>, String> {
    let recorder = Arc::new(AuditRecorder::new(journal.clone()));
    let feed = Arc::new(CallFeed::new(0));
    let backends = PolicyBackends {
        pins: runtime::pins::create_pins(store.clone(), recorder.clone(), feed.clone(), None),
        approvals: ApprovalService::new(recorder.clone(), store, compose::approval_limits(config)),
        feed,
        recorder,
        content_keys: None,
        telemetry: None,
        rate_sharing: None,
    };
    let pins = runtime::pins::with_settings(config, backends.pins.clone());
    let policy = compose::gateway_policy(config, &backends, pins, None);
    let pinning = |servers| policy.pinning(servers);
    let started = start_and_list(guardian, config, data, &ItemKind::ALL, pinning).await?;
    Ok(started.status)
}

/// Returns a summary of each server: the decisions about its tools, or the reason why it did not start.
async fn summary(
    config: &Config,
    data: &Path,
    statuses: &[ServerStatus],
) -> std::result::Result<String, String> {
    let (conditional, plain): (Vec<ConfigRule>, Vec<ConfigRule>) = config
        .rules
        .iter()
        .cloned()
        .partition(|rule| rule.condition.is_some());
    let mut unconditional = config.clone();
    unconditional.rules = plain;
    let view = OfflineView::open(unconditional, data, DefinitionChoice::Latest).await?;
    let mut text = String::new();
    for status in statuses {
        if status.state != ServerState::Running {
            text.push_str(&failed_server(status));
            continue;
        }
        let mut tools = DecidedTools::default();
        for item in tools_of(&view, &status.id) {
            let outcome = predict(config, &view, &item).await?;
            let depends = conditional
                .iter()
                .any(|rule| matches(rule, &item.full_name()));
            let name = item.upstream_name();
            match hidden_reason(&item) {
                Some(_) => tools.unaccepted.push(visible_line(name)),
                None => tools.add(name, outcome, depends),
            }
        }
        text.push_str(&tools.text(&status.id));
    }
    Ok(text)
}

fn tools_of(view: &OfflineView, server: &str) -> Vec<Arc<Item>> {
    let tools = view
        .catalogs()
        .iter()
        .filter(|(kind, _)| *kind == ItemKind::Tool);
    let items = tools.flat_map(|(_, catalog)| catalog.items());
    items
        .filter(|item| &*item.origin.server == server)
        .cloned()
        .collect()
}

/// Predicts the decision about a call without arguments.
async fn predict(
    config: &Config,
    view: &OfflineView,
    item: &Arc<Item>,
) -> std::result::Result<PredictedOutcome, String> {
    let caller = Caller::new(http_caller_name(config.token.is_some()));
    let request = ExplainRequest::parse(&item.full_name(), caller, None)?;
    let Some(found) = dry_run::resolve_name(view.catalogs(), &request.name) else {
        return Ok(PredictedOutcome::Hide);
    };
    let call = request.into_call(&found);
    let run = view.dry_run_at(&call, &found.item, SystemTime::now()).await;
    let rejects_arguments = |step: &DecisionStep| step.policy == ARGUMENT_POLICY;
    if !run.deciding_step.as_ref().is_some_and(rejects_arguments) {
        return Ok(run.outcome);
    }
    // A call of the tool would have the required arguments.
    Ok(match run.steps.iter().any(|step| step.decision == "ask") {
        true => PredictedOutcome::Ask,
        false => PredictedOutcome::Allow,
    })
}

/// Returns whether a rule matches a tool, whatever its condition says.
fn matches(rule: &ConfigRule, name: &str) -> bool {
    let any = |globs: &[crate::config::NameGlob]| {
        let mut globs = globs.iter();
        globs.any(|glob| GlobPattern::new(glob.as_str()).matches(name))
    };
    any(&rule.tools) && !any(&rule.except)
}

fn failed_server(status: &ServerStatus) -> String {
    let id = &status.id;
    if status.state == ServerState::SignIn {
        return format!("{id}: needs a sign-in; run: toolgate login {id}\n");
    }
    let why = status
        .error
        .as_deref()
        .unwrap_or("it did not respond in time");
    let mut text = format!("{id}: did not start: {}\n", visible_line(why));
    let skipped = status
        .failure_stderr
        .len()
        .saturating_sub(MAX_SHOWN_STDERR_LINES);
    for line in &status.failure_stderr[skipped..] {
        text.push_str(&format!("  stderr: {}\n", visible_line(line)));
    }
    text
}

/// Tools of one server by their decision.
#[derive(Default)]
struct DecidedTools {
    allowed: Vec<String>,
    asked: Vec<String>,
    denied: Vec<String>,
    dependent: Vec<String>,
    unaccepted: Vec<String>,
}

impl DecidedTools {
    fn add(&mut self, name: &str, outcome: PredictedOutcome, depends: bool) {
        let list = match outcome {
            PredictedOutcome::Deny | PredictedOutcome::Hide => &mut self.denied,
            _ if depends => &mut self.dependent,
            PredictedOutcome::Allow => &mut self.allowed,
            _ => &mut self.asked,
        };
        list.push(visible_line(name));
    }

    fn text(&self, id: &str) -> String {
        let lists = [
            ("allowed", &self.allowed),
            ("needs approval", &self.asked),
            ("denied", &self.denied),
            ("depends on the arguments", &self.dependent),
            ("hidden until you accept the definition", &self.unaccepted),
        ];
        let total: usize = lists.iter().map(|(_, names)| names.len()).sum();
        let mut text = format!("{id}: {}\n", count_of(total as u64, "tool"));
        for (decision, names) in lists.iter().filter(|(_, names)| !names.is_empty()) {
            let shown: Vec<&str> = names.iter().map(String::as_str).collect();
            text.push_str(&format!(
                "  {decision} ({}): {}\n",
                names.len(),
                join_names(&shown)
            ));
        }
        text
    }
}
