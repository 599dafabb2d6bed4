//! Prompts that take all arguments as a map.

use super::peer::{NEWEST_REVISION, Peer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use toolgate::{HandlerExit, Prompt, Server, prompt};

fn lines(arguments: &BTreeMap<String, String>) -> String {
    let lines: Vec<String> = arguments.iter().map(|(k, v)| format!("{k}={v}")).collect();
    lines.join(" ")
}

/// Fills in a form.
#[prompt]
fn form(#[serde(flatten)] arguments: BTreeMap<String, String>) -> String {
    lines(&arguments)
}

/// Says hello.
#[prompt]
fn hello() -> &'static str {
    "hello"
}

async fn peer() -> Peer {
    let typed = Prompt::typed("typed", |all: BTreeMap<String, String>, _| async move {
        Ok::<_, HandlerExit>(lines(&all))
    });
    let built = Prompt::new("built", |all, _| async move {
        Ok::<_, HandlerExit>(lines(&all))
    });
    let server = Server::new("forms", "1")
        .prompt(form)
        .prompt(typed)
        .prompt(built)
        .prompt(hello);
    Peer::open(&server.build().unwrap(), NEWEST_REVISION, json!({})).await
}

async fn listed(peer: &mut Peer) -> Vec<Value> {
    let list = peer.result("prompts/list", json!({})).await;
    list["prompts"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_map_takes_all_arguments_and_declares_none() {
    let mut peer = peer().await;
    let prompts = listed(&mut peer).await;
    for (at, name) in ["form", "typed", "built"].into_iter().enumerate() {
        assert!(prompts[at].get("arguments").is_none(), "{prompts:?}");
        for (arguments, text) in [
            (json!({"city": "Oslo", "unit": "K"}), "city=Oslo unit=K"),
            (json!({}), ""),
        ] {
            let params = json!({"name": name, "arguments": arguments});
            let result = peer.result("prompts/get", params).await;
            assert_eq!(result["messages"][0]["content"]["text"], text, "{name}");
        }
    }
}

#[tokio::test]
async fn a_prompt_without_parameters_declares_an_empty_list_and_rejects_arguments() {
    let mut peer = peer().await;
    assert_eq!(listed(&mut peer).await[3]["arguments"], json!([]));
    let params = json!({"name": "hello", "arguments": {"city": "Oslo"}});
    let error = peer.error("prompts/get", params).await;
    assert_eq!(error["code"], -32602, "{error}");
    let text = error.to_string();
    assert!(
        text.contains("no arguments") && text.contains("city"),
        "{text}"
    );
}

#[test]
fn declared_arguments_beside_a_map_are_an_error_of_the_build() {
    /// Both.
    #[prompt]
    fn both(city: String, #[serde(flatten)] others: BTreeMap<String, String>) -> String {
        city + &lines(&others)
    }

    let server = Server::new("forms", "1").prompt(both).build();
    let error = server.err().unwrap().to_string();
    assert!(
        error.contains("\"both\"") && error.contains("one map"),
        "{error}"
    );
}
