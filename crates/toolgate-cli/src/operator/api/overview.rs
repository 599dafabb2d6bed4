//! Overview of the past: counts, latencies, the flows between callers and servers, and what stands out.

use super::{ActionResult, OperatorApi, action_input::ActionInput};
use crate::audit_index::{
    ApprovalDay, AuditIndex, CallFilter, CountBucket, CountColumn, CountFilter, FlowCount,
    GroupCount, IndexedCall, RefusalCount,
};
use crate::timestamp::{micros, millis};
use serde_json::{Map, Value, json};
use std::{
    io,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Maximum number of flows, servers, tools, callers and refusals in an overview.
const MAX_FLOWS: usize = 200;
const MAX_GROUPS: usize = 100;
const MAX_REFUSALS: usize = 50;
/// Maximum number of parts of the time.
const MAX_PARTS: u64 = 400;
/// Maximum number of calls in one answer.
const MAX_CALLS: u64 = 500;
const MINUTE_MILLIS: u64 = 60_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

impl OperatorApi {
    /// Executes an action on the past; `None` for any other action.
    pub(super) async fn history_action(&self, action: &str, with: &Value) -> Option<ActionResult> {
        Some(match action {
            "history/overview" => self.overview(with).await,
            "history/calls" => self.past_calls(with).await,
            "history/insights" => self.insights().await,
            _ => return None,
        })
    }

    /// Returns the counts of a time: `from` and `to` in milliseconds, in parts of `step` minutes.
    async fn overview(&self, with: &Value) -> ActionResult {
        let input = ActionInput(with);
        let now = minutes(SystemTime::now()) + 1;
        let to = input
            .number("to")
            .map_or(now, |ms| ms.div_ceil(MINUTE_MILLIS))
            .min(now);
        let from = input
            .number("from")
            .map_or(to.saturating_sub(60), |ms| ms / MINUTE_MILLIS)
            .min(to);
        let step = input
            .number("step")
            .unwrap_or(1)
            .max((to - from).div_ceil(MAX_PARTS))
            .max(1);
        let days_from = input
            .number("days_from")
            .unwrap_or_default()
            .saturating_mul(1000);
        let filter = CountFilter {
            from,
            to,
            caller: input.filter("caller"),
            server: input.filter("server"),
            tool: input.filter("tool"),
        };
        let answer = self.history.query(move |index| {
            let all = |index: &AuditIndex| -> rusqlite::Result<Value> {
                let days_to = micros(SystemTime::now());
                let (time, servers) = (index.counts_over_time(&filter, step)?, index.counts_by(CountColumn::Server, &filter, MAX_GROUPS)?);
                let tools = index.counts_by(CountColumn::Tool, &filter, MAX_GROUPS)?;
                let callers = index.counts_by(CountColumn::Caller, &filter, MAX_GROUPS)?;
                let days = match days_from {
                    0 => Vec::new(),
                    from => index.approval_days(from, days_to, day_micros())?,
                };
                Ok(json!({
                    "from": filter.from * MINUTE_MILLIS, "step": step * MINUTE_MILLIS,
                    "buckets": time.iter().map(bucket_json).collect::<Vec<_>>(),
                    "flows": index.flows(&filter, MAX_FLOWS)?.iter().map(flow_json).collect::<Vec<_>>(),
                    "servers": groups_json(&servers), "tools": groups_json(&tools), "callers": groups_json(&callers),
                    "refusals": index.refusals(&filter, MAX_REFUSALS)?.iter().map(refusal_json).collect::<Vec<_>>(),
                    "days": days.iter().map(day_json).collect::<Vec<_>>(),
                }))
            };
            all(index).map_err(io::Error::other)
        });
        let answer = answer.await?;
        let mut value = answer.value;
        value["behind"] = json!(answer.behind);
        Ok(value)
    }

    /// Returns calls of the past, newest first.
    async fn past_calls(&self, with: &Value) -> ActionResult {
        let input = ActionInput(with);
        let (from, to) = input.period();
        let classes = with.get("classes").and_then(Value::as_array);
        let classes = classes.into_iter().flatten().filter_map(Value::as_str);
        let filter = CallFilter {
            from,
            to,
            caller: input.filter("caller"),
            server: input.filter("server"),
            tool: input.filter("tool"),
            rule: input.filter("rule"),
            classes: classes.map(str::to_owned).collect(),
            text: input.filter("text"),
        };
        let (before, most) = (input.number("before"), input.most(MAX_CALLS));
        let answer = self.history.query(move |index| {
            let calls = index
                .calls(&filter, before, most)
                .map_err(io::Error::other)?;
            Ok(json!({
                "calls": calls.iter().map(past_call_json).collect::<Vec<_>>(),
                // The position of the last one, if there may be more.
                "before": calls.last().filter(|_| calls.len() == most).map(|call| call.ts),
            }))
        });
        let answer = answer.await?;
        let mut value = answer.value;
        value["behind"] = json!(answer.behind);
        Ok(value)
    }

    /// Returns what stands out in the last seven days: tools that are always approved, tools that nobody calls, unused
    /// grants, and slow servers.
    async fn insights(&self) -> ActionResult {
        let now = SystemTime::now();
        let week = now.checked_sub(7 * DAY).unwrap_or(UNIX_EPOCH);
        let filter = CountFilter {
            from: minutes(week),
            to: minutes(now) + 1,
            ..CountFilter::default()
        };
        let answer = self.history.query(move |index| {
            let all = |index: &AuditIndex| -> rusqlite::Result<_> {
                Ok((
                    index.approvals_by_tool(micros(week))?,
                    index.counts_by(CountColumn::Tool, &filter, usize::MAX)?,
                    index.counts_by(CountColumn::Server, &filter, MAX_GROUPS)?,
                ))
            };
            all(index).map_err(io::Error::other)
        });
        let answer = answer.await?;
        let (approvals, tools, servers) = answer.value;
        let called: std::collections::HashSet<&str> =
            tools.iter().map(|tool| tool.name.as_str()).collect();
        let known = self.list_items(&[toolgate_core::ItemKind::Tool]).await;
        let name = |item: &Value| {
            format!(
                "{}.{}",
                item["server"].as_str().unwrap_or_default(),
                item["name"].as_str().unwrap_or_default()
            )
        };
        let never: Vec<String> = known
            .as_array()
            .into_iter()
            .flatten()
            .map(name)
            .filter(|name| !called.contains(name.as_str()))
            .collect();
        let by_rule = |name: &str| {
            let counts = tools.iter().find(|tool| tool.name == *name);
            counts.and_then(|tool| tool.counts.classes.get("rule"))
        };
        let approved = |(tool, approved, denied): &(String, u64, u64)| json!({"tool": tool, "approved": approved, "denied": denied, "denied_by_rule": by_rule(tool)});
        Ok(json!({
            "behind": answer.behind,
            "approvals": approvals.iter().map(approved).collect::<Vec<_>>(),
            "never_called": never, "servers": groups_json(&servers),
        }))
    }
}

fn classes_json(classes: &std::collections::BTreeMap<String, u64>) -> Map<String, Value> {
    classes
        .iter()
        .map(|(class, n)| (class.clone(), json!(n)))
        .collect()
}

fn bucket_json(bucket: &CountBucket) -> Value {
    json!({"classes": classes_json(&bucket.classes), "p50": bucket.p50, "p95": bucket.p95})
}

fn groups_json(groups: &[GroupCount]) -> Vec<Value> {
    let one = |group: &GroupCount| {
        let mut value = bucket_json(&group.counts);
        value["name"] = json!(group.name);
        value["n"] = json!(group.counts.total());
        value
    };
    groups.iter().map(one).collect()
}

fn flow_json(flow: &FlowCount) -> Value {
    json!({"caller": flow.caller, "server": flow.server, "classes": classes_json(&flow.classes)})
}

fn refusal_json(of: &RefusalCount) -> Value {
    json!({"caller": of.caller, "class": of.class, "tool": of.tool, "rule": of.rule, "n": of.count})
}

fn day_json(day: &ApprovalDay) -> Value {
    json!({
        "from": day.from / 1000, "asked": day.asked, "approved": day.approved, "denied": day.denied,
        "expired": day.expired, "median_wait_ms": day.median_wait.map(|micros| micros / 1000),
    })
}

/// Returns the row of a call of the past, in the form of a recent one.
pub(super) fn past_call_json(call: &IndexedCall) -> Value {
    let prefix = call.server.as_ref().map(|server| format!("{server}."));
    let tool = prefix.and_then(|prefix| call.tool.strip_prefix(&prefix).map(str::to_owned));
    json!({
        "id": call.id, "at": (call.ts - call.micros.min(call.ts)) / 1000, "ended": call.ts, "caller": call.caller, "server": call.server.as_deref().unwrap_or_default(),
        "tool": tool.unwrap_or_else(|| call.tool.clone()), "state": "done", "outcome": call.class.outcome, "refusal": call.class.refusal(),
        "approved": call.class.class == "approved", "took_ms": call.micros / 1000, "rule": call.rule, "past": true,
    })
}

fn minutes(at: SystemTime) -> u64 {
    millis(at) / MINUTE_MILLIS
}

fn day_micros() -> u64 {
    u64::try_from(DAY.as_micros()).unwrap_or(u64::MAX)
}
