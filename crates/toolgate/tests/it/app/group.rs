//! Groups of clients: one list, routed calls, and each client's own policy.

use super::sample_server::{REVISIONS, over, server};
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use toolgate::{
    Client, Cx, HandlerExit, Resource, Server, Structured, Tool,
    client::{CallProgress, ClientGroup, InputAnswer, InputKind},
    core::{Content, ErrorKind},
    handlers::ask::Reply,
};

/// Returns a server with a tool that says who it is, and one that links to a resource that it does not list.
fn named(name: &'static str) -> Server {
    let schema = json!({"type": "object"});
    let who = Tool::dynamic("who", schema.clone(), move |_: Value, _: Cx| async move {
        Ok::<_, HandlerExit>(name)
    });
    let link = Tool::dynamic("link", schema, move |_: Value, _: Cx| async move {
        Ok::<_, HandlerExit>(Content::link(&format!("file:///{name}/hidden"), "hidden"))
    });
    let page = format!("file:///{name}/page");
    let page = Resource::new(
        &page,
        "page",
        move |_| async move { Ok::<_, HandlerExit>(name) },
    );
    Server::new(name, "1").tool(who).tool(link).resource(page)
}

async fn two(revision: &str) -> ClientGroup {
    let open = |name| over(Client::builder().revision(revision), named(name));
    ClientGroup::new([("a", open("first").await), ("b", open("second").await)]).unwrap()
}

#[tokio::test]
async fn one_list_has_the_tools_of_all_and_calls_are_routed_in_every_revision() {
    for revision in REVISIONS {
        let group = two(revision).await;
        let tools = group.tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
        assert_eq!(names, ["a_who", "a_link", "b_who", "b_link"], "{revision}");
        assert!(tools.missing().is_empty());
        assert_eq!(group.call("a_who", ()).await.unwrap().text(), "first");
        assert_eq!(group.call("b_who", ()).await.unwrap().text(), "second");
        for unknown in ["who", "c_who", "a_nothing"] {
            let error = group.call(unknown, ()).await.unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::NotFound, "{unknown}");
        }
    }
}

#[tokio::test]
async fn resources_are_read_from_the_server_that_lists_them() {
    let group = two("2026-07-28").await;
    let text = |read: toolgate::core::ReadResult| read.parts().next().unwrap().text().unwrap();
    assert_eq!(group.resources().await.unwrap().len(), 2);
    assert_eq!(
        text(group.read("file:///first/page").await.unwrap()),
        "first"
    );
    assert_eq!(
        text(group.read("file:///second/page").await.unwrap()),
        "second"
    );
    let unlisted = group.read("file:///nowhere").await.unwrap_err();
    assert_eq!(
        *unlisted.kind(),
        ErrorKind::NotFound,
        "it belongs to no server"
    );
}

/// A link of one server never leads to another.
#[tokio::test]
async fn a_linked_resource_is_read_from_the_server_that_linked_to_it() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let open = |name: &'static str| {
        let asked = asked.clone();
        let events = move |event: toolgate::client::CallEvent| {
            asked.lock().unwrap().push((name, event.name));
        };
        over(Client::builder().observe(events), named(name))
    };
    let group =
        ClientGroup::new([("a", open("first").await), ("b", open("second").await)]).unwrap();
    group.call("b_link", ()).await.unwrap();
    asked.lock().unwrap().clear();
    group.read("file:///second/hidden").await.unwrap_err();
    let asked = asked.lock().unwrap();
    assert!(
        !asked.is_empty() && asked.iter().all(|(name, _)| *name == "second"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn each_call_passes_the_policy_of_its_own_client() {
    let confirmed = Arc::new(AtomicUsize::new(0));
    let count = confirmed.clone();
    let careful = Client::builder().confirm(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Err("no".to_owned()) }
    });
    let careful = over(careful, named("first")).await;
    let hidden = over(Client::builder().deny(["link"]), named("second")).await;
    let group = ClientGroup::new([("a", careful), ("b", hidden)]).unwrap();
    let refused = group.call("a_who", ()).await.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Refused(_)));
    assert_eq!(group.call("b_who", ()).await.unwrap().text(), "second");
    assert_eq!(confirmed.load(Ordering::Relaxed), 1);
    let names: Vec<String> = group
        .tools()
        .await
        .unwrap()
        .iter()
        .map(|t| t.name().to_owned())
        .collect();
    assert_eq!(
        names,
        ["a_who", "a_link", "b_who"],
        "the denied tool is hidden"
    );
    let bad = over(Client::builder(), server()).await;
    let group = ClientGroup::new([("w", bad)]).unwrap();
    let invalid = group.call("w_add", json!({"a": "x"})).await.unwrap_err();
    assert!(matches!(invalid.kind(), ErrorKind::InvalidArguments(_)));
}

#[tokio::test]
async fn input_is_requested_from_the_client_of_the_called_server() {
    let builder = Client::builder().on_elicit(|_| async { Reply::Accepted(json!({"value": "C"})) });
    let answering = over(builder, server()).await;
    let manual = Client::builder().manual_input([InputKind::Form]);
    let manual = over(manual, server()).await;
    let group = ClientGroup::new([("auto", answering), ("hand", manual)]).unwrap();
    let got: Value = group
        .call("auto_asks", ())
        .await
        .unwrap()
        .structured()
        .unwrap();
    assert_eq!(got, json!({"unit": "C"}));
    let started = group.call_with("hand_asks", ()).start().await.unwrap();
    let CallProgress::InputRequired(mut call) = started else {
        panic!("{started:?}")
    };
    let key = call.questions()[0].0.clone();
    let answer = InputAnswer::Form(Reply::Accepted(json!({"value": "F"})));
    call.answer(&key, answer).unwrap();
    let CallProgress::Done(result) = call.resume().await.unwrap() else {
        panic!("done")
    };
    assert_eq!(result.structured::<Value>().unwrap(), json!({"unit": "F"}));
    assert!(group.call_with("hand_nothing", ()).start().await.is_err());
}

#[tokio::test]
async fn a_closed_server_is_missing_and_the_others_work() {
    let group = two("2026-07-28").await;
    group.client("a").unwrap().close().await;
    assert_eq!(group.call("b_who", ()).await.unwrap().text(), "second");
    let tools = group.tools().await.unwrap();
    assert_eq!(tools.missing(), ["a"]);
    assert!(tools.iter().all(|tool| tool.name().starts_with("b_")));
    group.close().await;
    assert!(group.tools().await.is_err(), "no server is left");
}

#[tokio::test]
async fn a_tool_that_was_added_later_can_be_called() {
    let (server, registry) = named("first").build_with_registry().unwrap();
    let client = over(Client::builder().revision("2025-11-25"), server).await;
    let group = ClientGroup::new([("a", client.clone())]).unwrap();
    group.tools().await.unwrap();
    let run = |_: Value, _: Cx| async { Ok::<_, HandlerExit>(Structured(json!({}))) };
    let mut changes = group.changes(Vec::<String>::new()).await.unwrap();
    registry
        .set_tool(Tool::dynamic("new", json!({"type": "object"}), run))
        .unwrap();
    changes.next().await.unwrap();
    group.call("a_new", ()).await.unwrap();
}

#[tokio::test]
async fn a_model_uses_the_tools_of_all_servers() {
    let group = two("2026-07-28").await;
    let tools = group.tools().await.unwrap().to_anthropic();
    let call = json!({"type": "tool_use", "id": "t", "name": "b_who", "input": {}});
    let block = tools.run(&group, &call).await.unwrap();
    assert_eq!(
        block["content"],
        json!([{"type": "text", "text": "second"}])
    );
}

#[tokio::test]
async fn prefixes_that_could_collide_are_rejected() {
    let client = over(Client::builder(), named("first")).await;
    for prefixes in [["a", "a"], ["a", "a_b"], ["", "a"]] {
        let clients = prefixes.map(|prefix| (prefix, client.clone()));
        assert!(ClientGroup::new(clients).is_err(), "{prefixes:?}");
    }
}
