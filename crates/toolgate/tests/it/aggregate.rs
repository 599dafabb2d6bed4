//! Many services as one.

mod changes;
mod items;
mod links;
mod offer;
mod one_to_one;

use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::watch;
use toolgate::{
    Call, Caller, Error, Json, Outcome, Service,
    aggregate::{Aggregate, AggregateMember},
    core::{
        BoxFuture, Catalog, ChangeCounters, ChangeFilter, ChangeStream, Definition, ErrorKind,
        Item, ItemKind, ListRequest, Origin, Output,
    },
};
use toolgate_protocol::json::JsonLimits;

/// The schema of every tool, with all that can stand in one, and spaces where a program would write none.
const SCHEMA: &str = r##"{"type": "object",  "$anchor": "root", "$defs": {"s": {"$anchor": "s", "type": "string"}},
 "allOf": [{"properties": {"a": {"$ref": "#s"}}}], "anyOf": [{}], "oneOf": [true], "not": {"required": ["z"]},
 "if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"maxProperties": 1.0},
 "dependentSchemas": {"b": {"$ref": "#/$defs/s"}}, "unevaluatedProperties": false, "x-own": [null]}"##;

/// A service that has these tools, or none because it is down.
struct Script {
    catalog: Mutex<Option<Catalog>>,
    called: Mutex<Vec<String>>,
    stale: watch::Sender<ChangeCounters>,
    slow: bool,
}

impl Script {
    fn of(names: &[&str]) -> Arc<Script> {
        let script = Script {
            catalog: Mutex::new(None),
            called: Mutex::default(),
            stale: watch::Sender::default(),
            slow: false,
        };
        script.offer(names);
        Arc::new(script)
    }

    fn offer(&self, names: &[&str]) {
        let item = |name: &&str| {
            let text =
                format!(r#"{{"x":1.0,"name":"{name}","inputSchema":{SCHEMA},"y":{{"name":"n"}}}}"#);
            let json = Json::read(text.into_bytes(), &JsonLimits::default()).unwrap();
            Arc::new(Item::new(
                Origin {
                    server: "own".into(),
                    trusted: true,
                },
                Definition::tool(json).unwrap(),
            ))
        };
        *self.catalog.lock().unwrap() = Some(Catalog::with_missing_servers(
            names.iter().map(item).collect(),
            Vec::new(),
            Some("use me".to_owned()),
        ));
    }

    fn go_down(&self) {
        *self.catalog.lock().unwrap() = None;
    }

    fn called(&self) -> Vec<String> {
        self.called.lock().unwrap().clone()
    }
}

impl Service for Script {
    fn list(&self, _ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(async {
            if self.slow {
                std::future::pending::<()>().await;
            }
            self.catalog
                .lock()
                .unwrap()
                .clone()
                .ok_or_else(|| Error::new(ErrorKind::Upstream, "down"))
        })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            self.called.lock().unwrap().push(call.name().to_owned());
            Ok(Outcome::Done(Output::text("done")))
        })
    }

    fn changes(&self, _want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        Box::pin(async { Ok(ChangeStream::new(self.stale.subscribe())) })
    }
}

fn join(members: &[(&str, &Arc<Script>)]) -> Aggregate {
    let member = |(id, script): &(&str, &Arc<Script>)| {
        let service: Arc<dyn Service> = (*script).clone();
        AggregateMember {
            id: (*id).into(),
            prefix: (*id).to_owned(),
            service,
        }
    };
    Aggregate::new(members.iter().map(member).collect()).unwrap()
}

fn all() -> ListRequest {
    ListRequest::all(Caller::new("test"), ItemKind::Tool)
}

fn only(name: &str) -> ListRequest {
    let mut request = all();
    request.only_name = Some(name.into());
    request
}

fn call(name: &str) -> Call {
    Call::tool(
        "c1",
        Caller::new("test"),
        name,
        Json::from_value(&json!({})),
    )
}

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.items().iter().map(|item| item.def.name()).collect()
}

/// Holds: TOOL-29, BASE-49
#[tokio::test]
async fn tools_are_renamed_and_everything_else_stays() {
    let (a, b) = (Script::of(&["read", "a.b"]), Script::of(&["read"]));
    let both = join(&[("files", &a), ("git", &b)]);
    let listed = both.list(all()).await.unwrap();
    assert_eq!(names(&listed)[0], "files_read");
    assert_eq!(names(&listed)[2], "git_read");
    let item = &listed.items()[1];
    assert_eq!(item.def.name(), "files_a.b");
    assert_eq!(
        (item.full_name().as_str(), item.origin.trusted),
        ("files.a.b", true)
    );
    let json = item.def.json();
    let expected = format!(
        r#"{{"x":1.0,"name":"{}","inputSchema":{SCHEMA},"y":{{"name":"n"}}}}"#,
        item.def.name()
    );
    assert_eq!(json.as_str(), expected);
    assert_eq!(
        listed.instructions().as_deref(),
        Some("files: use me\n\ngit: use me")
    );
}

#[tokio::test]
async fn a_call_reaches_the_owner_under_its_own_name() {
    let (a, b) = (
        Script::of(&["read", "git_read"]),
        Script::of(&["read", "x/y", "a_b"]),
    );
    let both = join(&[("files", &a), ("git", &b)]);
    both.call(call("files_read")).await.unwrap();
    both.call(call("files_git_read")).await.unwrap();
    for name in names(&both.list(all()).await.unwrap())
        .into_iter()
        .filter(|name| name.starts_with("git"))
    {
        both.call(call(name)).await.unwrap();
    }
    assert_eq!(a.called(), ["read", "git_read"]);
    assert_eq!(b.called(), ["read", "x/y", "a_b"]);
    for unknown in [
        "read",
        "files_x-y",
        "git_x/y",
        "nobody_read",
        "Files_read",
        "",
    ] {
        assert_eq!(
            *both.call(call(unknown)).await.unwrap_err().kind(),
            ErrorKind::NotFound,
            "{unknown}"
        );
    }
}

#[tokio::test]
async fn a_single_member_may_keep_its_names() {
    let a = Script::of(&["read"]);
    let service: Arc<dyn Service> = a.clone();
    let one = Aggregate::new(vec![AggregateMember {
        id: "demo".into(),
        prefix: String::new(),
        service,
    }])
    .unwrap();
    let listed = one.list(all()).await.unwrap();
    assert_eq!(
        (names(&listed), listed.instructions().as_deref()),
        (vec!["read"], Some("use me"))
    );
    one.call(call("read")).await.unwrap();
    assert_eq!(a.called(), ["read"]);
}

#[tokio::test]
async fn while_nothing_changes_the_list_is_one_object() {
    let (a, b) = (Script::of(&["read"]), Script::of(&["show"]));
    let both = join(&[("files", &a), ("git", &b)]);
    let first = both.list(all()).await.unwrap();
    assert!(both.list(all()).await.unwrap().is_same_snapshot(&first));
    assert!(
        both.list(only("git_show"))
            .await
            .unwrap()
            .is_same_snapshot(&first)
    );
    b.offer(&["show", "log"]);
    let second = both.list(all()).await.unwrap();
    assert_eq!(names(&second), ["files_read", "git_show", "git_log"]);
    assert!(
        Arc::ptr_eq(&first.items()[0], &second.items()[0]),
        "the other member's items stay"
    );
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_down_is_missing_and_sinks_nobody() {
    let (a, b) = (Script::of(&["read"]), Script::of(&["show"]));
    let slow = Arc::new(Script {
        slow: true,
        catalog: Mutex::default(),
        called: Mutex::default(),
        stale: watch::Sender::default(),
    });
    let all_three =
        join(&[("files", &a), ("git", &b), ("slow", &slow)]).list_timeout(Duration::from_secs(3));
    b.go_down();
    let before = tokio::time::Instant::now();
    let listed = all_three.list(all()).await.unwrap();
    assert_eq!(
        (names(&listed), listed.missing_servers()),
        (
            vec!["files_read"],
            &["git".to_owned(), "slow".to_owned()][..]
        )
    );
    assert_eq!(before.elapsed().as_secs(), 3, "a bounded wait");
    assert!(
        all_three
            .list(only("files_read"))
            .await
            .unwrap()
            .find("files_read")
            .is_some()
    );
    assert_eq!(
        before.elapsed().as_secs(),
        3,
        "a call to a good one never waits for a bad one"
    );
    // Never seen: it reads as any unknown tool does, whoever may see it; the cause is for the operator.
    let ask = only("git_show");
    let trail = ask.decision_log.clone();
    assert!(
        all_three
            .list(ask)
            .await
            .unwrap()
            .find("git_show")
            .is_none()
    );
    assert_eq!(trail.steps()[0].reason, "down");
    b.offer(&["show"]);
    assert_eq!(
        all_three.list(all()).await.unwrap().missing_servers(),
        ["slow"]
    );
    b.go_down();
    assert_eq!(
        all_three.list(all()).await.unwrap().missing_servers(),
        ["git", "slow"]
    );
    let last = all_three.list(only("git_show")).await.unwrap();
    assert!(
        last.find("git_show").is_some() && last.find("git_gone").is_none(),
        "its last list answers for it"
    );
}

#[tokio::test]
async fn changes_of_all_members_are_told() {
    let (a, b) = (Script::of(&["read"]), Script::of(&["show"]));
    let both = join(&[("files", &a), ("git", &b)]);
    let mut changes = both
        .changes(ChangeFilter::all_lists(Caller::new("test")))
        .await
        .unwrap();
    for script in [&a, &b, &a] {
        script.stale.send_modify(|stale| stale.tools += 1);
        let told = tokio::time::timeout(Duration::from_secs(10), changes.next()).await;
        assert!(told.unwrap().is_some());
    }
}
