//! Random cases of callers, groups, claims, views and routes, compared with an evaluator that shares no code with the
//! policy: it knows the rules as values, not as text of a config.

use super::gateway_policy;
use crate::{
    config::Config,
    mcp_path::McpPath,
    runtime::{call_feed::CallFeed, snapshot::PolicyBackends},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path, sync::Arc};
use toolgate_core::{
    BoxFuture, Call, Caller, Catalog, ChangeFilter, ChangeStream, Definition, Error, Item, Json,
    ListRequest, Op, Origin, Outcome, Pipeline, Service,
};
use toolgate_policy::{
    ApprovalChannel, ApprovalService, Approver, AuditRecorder, MemoryStateStore, Pins, StateStore,
};

const WORLDS: usize = 100;
const CASES_PER_WORLD: usize = 100;

const SERVERS: [&str; 4] = ["files", "mail", "pager", "bank"];
const TOOLS: [&str; 3] = ["read", "write", "page"];
const GROUPS: [&str; 4] = ["oncall", "sales", "partner/oncall", "on"];
const ROLES: [&str; 3] = ["admin", "viewer", "partner/admin"];
const VIEWS: [&str; 3] = ["ops", "desk", "all"];
const TOOL_GLOBS: [&str; 8] = [
    "*",
    "files.*",
    "mail.*",
    "pager.page",
    "*.write",
    "bank.*",
    "*.r*",
    "?a*.*",
];
const CALLER_GLOBS: [&str; 10] = [
    "*",
    "group:oncall",
    "group:on*",
    "group:partner/*",
    "role:admin",
    "role:*",
    "corp:a*",
    "key:*",
    "corp:*",
    "anonymous@http",
];

/// Pseudorandom numbers (xorshift64*), the same in every run with the seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn some<'a>(&mut self, of: &[&'a str], percent: usize) -> Vec<&'a str> {
        let each = of.iter().copied();
        each.filter(|_| self.chance(percent)).collect()
    }
}

/// Condition of a rule, as a value.
enum Condition {
    InGroup(&'static str),
    HasRole(&'static str),
    DepartmentIs(&'static str),
    HasDepartment,
    LevelAtLeast(i64),
    AmountAbove(i64),
    Not(Box<Condition>),
    Both(Box<Condition>, Box<Condition>),
}

impl Condition {
    fn random(random: &mut Random, depth: usize) -> Condition {
        match random.below(if depth == 0 { 7 } else { 9 }) {
            0 => Condition::InGroup(random.one(&GROUPS)),
            1 => Condition::HasRole(random.one(&ROLES)),
            2 => Condition::DepartmentIs(random.one(&["sales", "ops"])),
            3 => Condition::HasDepartment,
            4 => Condition::LevelAtLeast(random.below(4) as i64),
            5 | 6 => Condition::AmountAbove(random.below(4) as i64),
            7 => Condition::Not(Box::new(Condition::random(random, depth - 1))),
            _ => Condition::Both(
                Box::new(Condition::random(random, depth - 1)),
                Box::new(Condition::random(random, depth - 1)),
            ),
        }
    }

    fn text(&self) -> String {
        match self {
            Condition::InGroup(group) => format!("'{group}' in caller.groups"),
            Condition::HasRole(role) => format!("caller.roles.exists(r, r == '{role}')"),
            Condition::DepartmentIs(name) => format!("caller.claims.department == '{name}'"),
            Condition::HasDepartment => "has(caller.claims.department)".to_owned(),
            Condition::LevelAtLeast(level) => format!("caller.claims.level >= {level}"),
            Condition::AmountAbove(amount) => format!("args.amount > {amount}"),
            Condition::Not(of) => format!("!({})", of.text()),
            Condition::Both(a, b) => format!("({}) && ({})", a.text(), b.text()),
        }
    }

    fn reads_arguments(&self) -> bool {
        match self {
            Condition::AmountAbove(_) => true,
            Condition::Not(of) => of.reads_arguments(),
            Condition::Both(a, b) => a.reads_arguments() || b.reads_arguments(),
            _ => false,
        }
    }

    /// Evaluates the condition; `None` if it has no value, because a claim is missing.
    fn holds(&self, who: &Who, amount: i64) -> Option<bool> {
        match self {
            Condition::InGroup(group) => Some(who.groups.iter().any(|g| g == group)),
            Condition::HasRole(role) => Some(who.roles.iter().any(|r| r == role)),
            Condition::DepartmentIs(name) => Some(who.department? == *name),
            Condition::HasDepartment => Some(who.department.is_some()),
            Condition::LevelAtLeast(level) => Some(who.level? >= *level),
            Condition::AmountAbove(limit) => Some(amount > *limit),
            Condition::Not(of) => of.holds(who, amount).map(|holds| !holds),
            Condition::Both(a, b) => match (a.holds(who, amount), b.holds(who, amount)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
        }
    }
}

struct CaseRule {
    tools: &'static str,
    except: Option<&'static str>,
    callers: Vec<&'static str>,
    condition: Option<Condition>,
    /// 0 allows, 1 asks, 2 denies.
    action: usize,
    rate: Option<usize>,
    approvals: Option<u64>,
}

impl CaseRule {
    fn random(random: &mut Random) -> CaseRule {
        let action = random.below(3);
        CaseRule {
            tools: random.one(&TOOL_GLOBS),
            except: random.chance(20).then(|| random.one(&TOOL_GLOBS[1..])),
            callers: random.some(&CALLER_GLOBS, 20),
            condition: match action == 2 && random.chance(60) {
                // Such a rule denies calls, and hides nothing.
                true => Some(Condition::Both(
                    Box::new(Condition::AmountAbove(random.below(3) as i64)),
                    Box::new(Condition::Not(Box::new(Condition::random(random, 1)))),
                )),
                false => random.chance(50).then(|| Condition::random(random, 2)),
            },
            action,
            rate: random.chance(20).then(|| 1 + random.below(900)),
            approvals: (action == 1 && random.chance(40)).then(|| 2 + random.below(3) as u64),
        }
    }

    fn text(&self, header: &str) -> String {
        let mut text = format!("[[{header}]]\ntools = [\"{}\"]\n", self.tools);
        if let Some(except) = self.except {
            text += &format!("except = [\"{except}\"]\n");
        }
        if !self.callers.is_empty() {
            text += &format!("callers = {:?}\n", self.callers);
        }
        if let Some(condition) = &self.condition {
            text += &format!("when = \"\"\"{}\"\"\"\n", condition.text());
        }
        if let Some(rate) = self.rate {
            text += &format!("rate = \"{rate}/h\"\n");
        }
        if let Some(approvals) = self.approvals {
            text += &format!("approvals = {approvals}\n");
        }
        text + &format!("action = \"{}\"\n", ["allow", "ask", "deny"][self.action])
    }

    fn names(&self, tool: &str) -> bool {
        matches(self.tools, tool) && !self.except.is_some_and(|except| matches(except, tool))
    }

    fn is_for(&self, who: &Who) -> bool {
        is_among(&self.callers, who)
    }
}

/// Matches a glob: the definition, without regard to cost.
fn matches(glob: &str, name: &str) -> bool {
    match (glob.chars().next(), name.chars().next()) {
        (None, end) => end.is_none(),
        (Some('*'), None) => matches(&glob[1..], name),
        (Some('*'), Some(_)) => matches(&glob[1..], name) || matches(glob, &name[1..]),
        (Some('?'), Some(_)) => matches(&glob[1..], &name[1..]),
        (Some(a), Some(b)) => a == b && matches(&glob[1..], &name[1..]),
        (Some(_), None) => false,
    }
}

fn is_among(callers: &[&str], who: &Who) -> bool {
    let one = |glob: &&str| match glob.split_once(':') {
        Some(("group", group)) => who.groups.iter().any(|name| matches(group, name)),
        Some(("role", role)) => who.roles.iter().any(|name| matches(role, name)),
        _ => matches(glob, &who.name),
    };
    callers.is_empty() || callers.iter().any(one)
}

struct CaseView {
    name: &'static str,
    servers: Option<Vec<&'static str>>,
    callers: Vec<&'static str>,
    rules: Vec<CaseRule>,
}

/// A config, as values.
struct World {
    rules: Vec<CaseRule>,
    views: Vec<CaseView>,
    default_view: Option<&'static str>,
}

impl World {
    fn random(random: &mut Random) -> World {
        let rules = |random: &mut Random, most: usize| {
            let count = random.below(most);
            (0..count).map(|_| CaseRule::random(random)).collect()
        };
        let mut views = Vec::new();
        for name in VIEWS {
            if random.chance(90) {
                let servers = random.some(&SERVERS, 50);
                views.push(CaseView {
                    name,
                    servers: (!servers.is_empty()).then_some(servers),
                    callers: match random.chance(50) {
                        true => Vec::new(),
                        false => random.some(&CALLER_GLOBS, 25),
                    },
                    rules: Vec::new(),
                });
            }
        }
        for view in &mut views {
            // Rules of a view may name only its servers.
            let all: Vec<CaseRule> = rules(random, 4);
            let is_inside = |glob: &str| match glob.split_once('.') {
                Some((server, _)) => SERVERS.iter().any(|id| {
                    view.servers
                        .as_ref()
                        .is_none_or(|servers| servers.contains(id))
                        && (server.contains(['*', '?']) && matches(server, id) || server == *id)
                }),
                None => true,
            };
            let fits = |rule: &CaseRule| is_inside(rule.tools) && rule.except.is_none_or(is_inside);
            view.rules = all.into_iter().filter(fits).collect();
        }
        let default_view = match views.as_slice() {
            [] => None,
            views => random
                .chance(25)
                .then(|| views[random.below(views.len())].name),
        };
        World {
            rules: rules(random, 6),
            views,
            default_view,
        }
    }

    fn config(&self) -> Config {
        let mut text = String::new();
        if let Some(view) = self.default_view {
            text += &format!("default_view = \"{view}\"\n");
        }
        text += "[auth]\nresource = \"https://t.test/mcp\"\n\
            [auth.issuer.corp]\nurl = \"https://l.test\"\ngroups_claim = \"groups\"\n\
            roles_claim = [\"realm_access\", \"roles\"]\n\
            claims = { department = [\"org\", \"department\"], level = \"level\" }\n\
            [auth.issuer.ally]\nurl = \"https://m.test\"\ngroups_claim = \"memberOf\"\n\
            roles_claim = \"roles\"\ngroup_prefix = \"partner/\"\n";
        for server in SERVERS {
            text += &format!("[server.{server}]\ncommand = [\"x\"]\n");
        }
        for rule in &self.rules {
            text += &rule.text("rule");
        }
        for view in &self.views {
            text += &format!("[view.{}]\n", view.name);
            if let Some(servers) = &view.servers {
                text += &format!("servers = {servers:?}\n");
            }
            if !view.callers.is_empty() {
                text += &format!("callers = {:?}\n", view.callers);
            }
            for rule in &view.rules {
                text += &rule.text(&format!("view.{}.rule", view.name));
            }
        }
        Config::parse(Path::new("/etc/toolgate.toml"), &text)
            .unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// The answer that the rules give, by the independent evaluator.
    fn answer(&self, who: &Who, path: &str, tool: &str, amount: i64) -> Answer {
        let in_path = path.split('/').nth(2);
        let name = in_path.or(self.default_view);
        let view = name.map(|name| self.views.iter().find(|view| view.name == name));
        let view = match view {
            None => None,
            Some(Some(view)) if is_among(&view.callers, who) => Some(view),
            Some(_) => return Answer::NoView,
        };
        let server = tool.split('.').next().unwrap();
        let servers = view.and_then(|view| view.servers.as_ref());
        if servers.is_some_and(|servers| !servers.contains(&server)) {
            return Answer::Hidden;
        }
        let rules = self
            .rules
            .iter()
            .chain(view.iter().flat_map(|view| &view.rules));
        let rules: Vec<&CaseRule> = rules
            .filter(|rule| rule.names(tool) && rule.is_for(who))
            .collect();
        // Without a value, a condition enables a rule that restricts, and disables one that allows.
        let applies = |rule: &&&CaseRule| match &rule.condition {
            None => true,
            Some(condition) => condition.holds(who, amount).unwrap_or(rule.action > 0),
        };
        let applying: Vec<&&CaseRule> = rules.iter().filter(applies).collect();
        let always = |rule: &&&&CaseRule| {
            !rule
                .condition
                .as_ref()
                .is_some_and(Condition::reads_arguments)
        };
        if applying.iter().filter(always).any(|rule| rule.action == 2) {
            return Answer::Hidden;
        }
        let action = applying.iter().map(|rule| rule.action).max().unwrap_or(1);
        let mut rates: Vec<usize> = rules.iter().filter_map(|rule| rule.rate).collect();
        rates.sort_unstable();
        let approvals = rules.iter().filter_map(|rule| rule.approvals).max();
        Answer::Judged {
            action,
            rates,
            approvals: approvals.filter(|_| action == 1).unwrap_or(1),
        }
    }
}

/// A caller, as the evaluator knows it, and its token or key.
struct Who {
    name: String,
    groups: Vec<String>,
    roles: Vec<String>,
    department: Option<&'static str>,
    level: Option<i64>,
    credential: Credential,
}

enum Credential {
    None,
    Key(String),
    Token(&'static str, Value),
}

impl Who {
    fn random(random: &mut Random) -> Who {
        let names = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let mut who = Who {
            name: "anonymous@http".to_owned(),
            groups: Vec::new(),
            roles: Vec::new(),
            department: None,
            level: None,
            credential: Credential::None,
        };
        let own = ["oncall", "sales", "on"];
        match random.below(8) {
            0 => {}
            1 | 2 => {
                who.groups = names(random.some(&GROUPS, 40));
                who.name = format!("key:{}", random.below(1_000_000_000));
                who.credential = Credential::Key(who.name[4..].to_owned());
            }
            3 | 4 => {
                let (groups, role) = (random.some(&own, 40), random.one(&["admin", "viewer"]));
                who.name = "ally:ann".to_owned();
                who.groups = groups
                    .iter()
                    .map(|group| format!("partner/{group}"))
                    .collect();
                who.roles = vec![format!("partner/{role}")];
                who.credential =
                    Credential::Token("ally", json!({"memberOf": groups, "roles": role}));
            }
            _ => {
                who.groups = names(random.some(&own, 40));
                who.roles = names(random.some(&["admin", "viewer"], 40));
                who.department = random.chance(60).then(|| random.one(&["sales", "ops"]));
                who.level = random.chance(60).then(|| random.below(5) as i64);
                who.name = format!("corp:{}", random.one(&["ann", "ben"]));
                let mut claims =
                    json!({"groups": who.groups, "realm_access": {"roles": who.roles}});
                if let Some(department) = who.department {
                    claims["org"] = json!({"department": department});
                }
                if let Some(level) = who.level {
                    claims["level"] = json!(level);
                }
                who.credential = Credential::Token("corp", claims);
            }
        }
        who
    }
}

#[derive(Debug, Eq, PartialEq)]
enum Answer {
    NoView,
    Hidden,
    Judged {
        action: usize,
        /// Rates per hour; empty for the default.
        rates: Vec<usize>,
        approvals: u64,
    },
}

/// Service without items; a dry run brings its own.
struct NoItems;

impl Service for NoItems {
    fn list(&self, _: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(async { Ok(Catalog::default()) })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move { Err(call.unknown_item_error()) })
    }

    fn changes(&self, _: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async {
            Ok(ChangeStream::new(
                tokio::sync::watch::channel(Default::default()).1,
            ))
        })
    }
}

/// The gateway's parts for a config: its policy around a service, and its keys.
struct PolicyUnderTest {
    config: Config,
    approvals: Arc<ApprovalService>,
    access: toolgate_policy::AccessRules,
    pipeline: Pipeline,
}

impl PolicyUnderTest {
    fn new(config: Config) -> PolicyUnderTest {
        let store: Arc<dyn StateStore> = Arc::new(MemoryStateStore::new());
        let recorder = Arc::new(AuditRecorder::log());
        let kept = PolicyBackends {
            feed: Arc::new(CallFeed::new(0)),
            approvals: ApprovalService::new(recorder.clone(), store.clone(), Default::default()),
            pins: Pins::new(store, recorder.clone()),
            recorder,
            content_keys: None,
            telemetry: None,
            rate_sharing: None,
        };
        let mut policy = gateway_policy(&config, &kept, kept.pins.clone(), None);
        // The items are in no list, so no definition is pinned.
        policy.pins = None;
        PolicyUnderTest {
            approvals: kept.approvals.clone(),
            access: policy.access.clone(),
            pipeline: policy.over(Arc::new(NoItems)),
            config,
        }
    }

    async fn caller(&self, who: &Who) -> Caller {
        match &who.credential {
            Credential::None => Caller::new(who.name.as_str()),
            Credential::Key(name) => {
                let operator = Approver::named(ApprovalChannel::Terminal, "ann");
                let keys = self.approvals.freezes().keys();
                let key = keys.create_in_groups(name, who.groups.clone(), None, &operator, 1000);
                keys.verify(key.await.unwrap().reveal()).unwrap().caller()
            }
            Credential::Token(issuer, claims) => {
                let issuers = &self.config.auth.issuers;
                let issuer = issuers.iter().find(|one| one.id == *issuer).unwrap();
                let attributes = issuer.claims.attributes(&Json::from_value(claims)).unwrap();
                Caller::new(who.name.as_str()).with_attributes(attributes)
            }
        }
    }

    async fn answer(&self, who: &Who, path: &str, tool: &str, amount: i64) -> Answer {
        let caller = self.caller(who).await;
        let view = McpPath::parse(path).unwrap().view;
        let caller = match view.or(self.config.default_view.as_deref()) {
            Some(view) => caller.in_view(view),
            None => caller,
        };
        if self.access.view_refusal(&caller).is_some() {
            return Answer::NoView;
        }
        let arguments = Json::from_value(&json!({"amount": amount}));
        let call = Call::new("c", caller, Op::Tool, tool, arguments);
        let run = self.pipeline.explain(&call, &item(tool)).await;
        if run.outcome.as_str() == "hide" {
            return Answer::Hidden;
        }
        let hourly = |reason: &str| {
            let (rate, _) = reason.split_once(" per hour; ")?;
            rate.parse().ok()
        };
        let steps = run.steps.iter();
        let mut rates: Vec<usize> = steps
            .filter(|step| step.policy == "rate")
            .filter_map(|step| hourly(&step.reason))
            .collect();
        rates.sort_unstable();
        let approvals = run.steps.iter().find_map(|step| {
            let (count, _) = step.reason.split_once(" different people must approve")?;
            count.parse().ok()
        });
        let action = match run.outcome.as_str() {
            "allow" => 0,
            "ask" => 1,
            _ => 2,
        };
        Answer::Judged {
            // A denied call is not counted.
            rates: if action == 2 { Vec::new() } else { rates },
            approvals: approvals.unwrap_or(1),
            action,
        }
    }
}

fn item(tool: &str) -> Arc<Item> {
    let (server, name) = tool.split_once('.').unwrap();
    let schema = json!({"type": "object", "properties": {"amount": {"type": "integer"}}});
    let definition = Json::from_value(&json!({"name": name, "inputSchema": schema}));
    let origin = Origin {
        server: server.into(),
        trusted: false,
    };
    Arc::new(Item::new(origin, Definition::tool(definition).unwrap()))
}

#[tokio::test]
async fn random_callers_views_and_routes_are_judged_like_an_independent_evaluator() {
    let seed = std::env::var("TOOLGATE_SEED").ok();
    let seed = seed.map_or_else(|| 0x9E37_79B9_7F4A_7C15, |seed| seed.parse().unwrap());
    let mut random = Random(seed);
    let mut counts = BTreeMap::<String, usize>::new();
    let mut differences = Vec::new();
    for _ in 0..WORLDS {
        let world = World::random(&mut random);
        let policy = PolicyUnderTest::new(world.config());
        for _ in 0..CASES_PER_WORLD {
            let who = Who::random(&mut random);
            let route = random.one(&[
                "/mcp",
                "/mcp",
                "/mcp/ops",
                "/mcp/desk",
                "/mcp/all",
                "/sse/ops",
                "/mcp/none",
            ]);
            let tool = format!("{}.{}", random.one(&SERVERS), random.one(&TOOLS));
            let amount = random.below(5) as i64;
            let expected = world.answer(&who, route, &tool, amount);
            let expected = match expected {
                Answer::Judged { action: 2, .. } => Answer::Judged {
                    action: 2,
                    rates: Vec::new(),
                    approvals: 1,
                },
                other => other,
            };
            let found = policy.answer(&who, route, &tool, amount).await;
            let kind = match &expected {
                Answer::Judged { action, .. } => format!("action {action}"),
                other => format!("{other:?}"),
            };
            *counts.entry(kind).or_default() += 1;
            if found != expected {
                differences.push(format!(
                    "{} at {route} calls {tool}: {found:?}, not {expected:?}",
                    who.name
                ));
            }
        }
    }
    let cases: usize = counts.values().sum();
    eprintln!(
        "seed {seed}: {cases} cases, {} differences; {counts:?}",
        differences.len()
    );
    assert_eq!(cases, WORLDS * CASES_PER_WORLD);
    assert!(
        differences.is_empty(),
        "{}",
        differences[..differences.len().min(5)].join("\n")
    );
    assert!(
        counts.len() == 5 && counts.values().all(|count| *count >= 200),
        "{counts:?}"
    );
}
