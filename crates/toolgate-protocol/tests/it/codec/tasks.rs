//! Tasks, in the words of both revisions that have some.

use super::{json, object, text};
use proptest::prelude::*;
use toolgate_protocol::{
    dialect::{self, Dialect},
    json::Json,
    message::RpcError,
    method::{
        definition::Definition,
        elicitation::RawInputRequest,
        initialize::Implementation,
        tasks::{Task, TaskDetail, TaskForm, TaskMetadata, TaskStatus, TaskSupport},
    },
};

fn detail(status: TaskStatus) -> BoxedStrategy<TaskDetail> {
    match status {
        TaskStatus::InputRequired => prop::collection::hash_map("[a-z]{1,4}", object(), 1..3)
            .prop_map(|asks| {
                let asks = asks.into_iter().map(|(key, params)| RawInputRequest {
                    key,
                    method: "elicitation/create".to_owned(),
                    params: Some(json(&params)),
                });
                TaskDetail::InputRequests(asks.collect())
            })
            .boxed(),
        TaskStatus::Completed => object().prop_map(|o| TaskDetail::Result(json(&o))).boxed(),
        TaskStatus::Failed => (-32_100..-32_000_i64, text())
            .prop_map(|(code, text)| TaskDetail::Error(RpcError::new(code, text)))
            .boxed(),
        TaskStatus::Working | TaskStatus::Cancelled => Just(TaskDetail::None).boxed(),
    }
}

fn task() -> impl Strategy<Value = Task> {
    let status = prop::sample::select(TaskStatus::ALL.to_vec());
    let parts = status.prop_flat_map(|status| (Just(status), detail(status)));
    let number = || prop::option::of(0..i64::MAX as u64);
    (parts, text(), prop::option::of(text()), number(), number()).prop_map(
        |((status, detail), id, message, ttl_ms, poll_ms)| Task {
            id,
            status,
            message,
            created: "2026-01-01T00:00:00.000Z".to_owned(),
            updated: "2026-01-02T00:00:00.000Z".to_owned(),
            ttl_ms,
            poll_ms,
            detail,
        },
    )
}

fn with_words() -> [&'static Dialect; 2] {
    let mut found = dialect::ALL
        .into_iter()
        .filter(|d| d.tasks != TaskForm::None);
    let both = [found.next().unwrap(), found.next().unwrap()];
    assert!(found.next().is_none(), "another revision with tasks");
    both
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Holds: XTASK-03
    #[test]
    fn a_task_is_read_back(task in task()) {
        let server = Implementation::new("s", "1");
        for dialect in with_words() {
            let words = dialect.tasks;
            let bare = Task { detail: TaskDetail::None, ..task.clone() };
            let whole = if words == TaskForm::Extension { task.clone() } else { bare.clone() };
            let (created, looked) = (dialect.task_created(&task, &server), dialect.task(&task, &server));
            let read = Task::read(words, &created).unwrap();
            prop_assert_eq!(Task { detail: TaskDetail::None, ..read }, bare);
            for member in ["result", "error", "inputRequests"] {
                prop_assert!(created.get(member).is_none(), "{} has {}", dialect.revision, member);
            }
            prop_assert_eq!(Task::read(words, &looked).unwrap(), whole);
            let kind = |json: &Json| json.get("resultType").and_then(|kind| kind.string());
            let stateless = |word: &str| dialect.stateless.then(|| word.to_owned());
            prop_assert_eq!(kind(&created), stateless("task"));
            prop_assert_eq!(kind(&looked), stateless("complete"));
        }
    }
}

#[test]
fn what_is_no_task_is_none() {
    let good = r#"{"taskId":"t","status":"working","createdAt":"x","lastUpdatedAt":"x","ttlMs":1}"#;
    let read = |text: &str| {
        let json = json(&serde_json::from_str(text).unwrap());
        Task::read(TaskForm::Extension, &json)
    };
    assert_eq!(read(good).unwrap().ttl_ms, Some(1));
    assert!(read(&good.replace("working", "done")).is_err());
    assert!(read(&good.replace("taskId", "id")).is_err());
    assert!(read(&good.replace(r#""t""#, "7")).is_err());
}

#[test]
fn the_wish_for_a_task_is_read() {
    let read = |text: &str| {
        let params = json(&serde_json::from_str(text).unwrap());
        TaskMetadata::read(Some(&params))
    };
    assert_eq!(read("{}"), Ok(None));
    assert_eq!(
        read(r#"{"task":{}}"#),
        Ok(Some(TaskMetadata { ttl_ms: None }))
    );
    let minute = TaskMetadata {
        ttl_ms: Some(60_000),
    };
    assert_eq!(read(r#"{"task":{"ttl":60000}}"#), Ok(Some(minute)));
    assert!(read(r#"{"task":true}"#).is_err());
    assert!(read(r#"{"task":{"ttl":-1}}"#).is_err());
}

#[test]
fn a_tool_says_whether_it_can_be_a_task() {
    let of = |execution: &str| {
        let text = format!(r#"{{"name":"a","inputSchema":{{}}{execution}}}"#);
        let json = json(&serde_json::from_str(&text).unwrap());
        TaskSupport::of(&Definition::tool(json).unwrap())
    };
    assert_eq!(of(""), TaskSupport::Forbidden);
    assert_eq!(of(r#","execution":{}"#), TaskSupport::Forbidden);
    assert_eq!(
        of(r#","execution":{"taskSupport":"often"}"#),
        TaskSupport::Forbidden
    );
    for support in [
        TaskSupport::Forbidden,
        TaskSupport::Optional,
        TaskSupport::Required,
    ] {
        let said = format!(r#","execution":{{"taskSupport":"{}"}}"#, support.as_str());
        assert_eq!(of(&said), support);
    }
}
