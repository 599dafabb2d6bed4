//! What is done in each scenario. Most ask for nothing special: list the tools and call each one.

use serde_json::{Value, json};
use toolgate::{ItemKind, Op};

use crate::peer::Peer;
use crate::{Failed, arguments};

/// Plays a scenario to its end.
///
/// # Errors
/// Something that the scenario needs does not work.
pub(crate) async fn play(scenario: &str, peer: &Peer, context: &Value) -> Result<(), Failed> {
    match scenario {
        "initialize" | "json-schema-ref-no-deref" => tools(peer).await.map(drop),
        "request-metadata" => twice(peer).await,
        "http-standard-headers" => everything(peer).await,
        "http-custom-headers" => given(peer, context).await,
        "json-schema-2020-12-preservation" => echo_schema(peer).await,
        "sep-2322-client-request-state" => between_rounds(peer).await,
        _ => call_each(peer).await,
    }
}

/// The names of the tools with their schemas.
async fn tools(peer: &Peer) -> Result<Vec<(String, Value)>, Failed> {
    let items = peer.list(ItemKind::Tool).await?;
    let one = |def: &toolgate::Definition| (def.name().to_owned(), def.input_schema().to_value());
    Ok(items.iter().map(|item| one(&item.def)).collect())
}

async fn call_each(peer: &Peer) -> Result<(), Failed> {
    for (name, schema) in tools(peer).await? {
        peer.used(Op::Tool, &name, &arguments::that_fit(&schema))
            .await?;
    }
    Ok(())
}

/// Two requests besides those that open the server.
async fn twice(peer: &Peer) -> Result<(), Failed> {
    tools(peer).await?;
    // The mock server has no tool; that it is asked for one is what counts.
    let _ = peer.used(Op::Tool, "any", &json!({})).await;
    Ok(())
}

/// Every kind of thing, listed and used.
async fn everything(peer: &Peer) -> Result<(), Failed> {
    call_each(peer).await?;
    for item in peer.list(ItemKind::Resource).await? {
        let uri = item.def.name();
        peer.used(Op::Resource, uri, &json!({"uri": uri})).await?;
    }
    for item in peer.list(ItemKind::Prompt).await? {
        peer.used(Op::Prompt, item.def.name(), &json!({})).await?;
    }
    Ok(())
}

/// The calls that the suite gives, after the list: it says which arguments are repeated as headers.
async fn given(peer: &Peer, context: &Value) -> Result<(), Failed> {
    tools(peer).await?;
    for call in context["toolCalls"].as_array().into_iter().flatten() {
        let name = call["name"].as_str().unwrap_or_default();
        peer.used(Op::Tool, name, &call["arguments"]).await?;
    }
    Ok(())
}

/// Sends back the schema of one tool to another.
async fn echo_schema(peer: &Peer) -> Result<(), Failed> {
    let all = tools(peer).await?;
    let found = all
        .iter()
        .find(|(name, _)| name == "json_schema_2020_12_tool");
    let (_, schema) = found.ok_or("the tool with the schema is not listed")?;
    let arguments = json!({"schema": schema});
    peer.used(Op::Tool, "json_schema_echo", &arguments).await?;
    Ok(())
}

/// A call of another tool between the two rounds of one.
async fn between_rounds(peer: &Peer) -> Result<(), Failed> {
    let none = json!({});
    tools(peer).await?;
    let first = peer.begin(Op::Tool, "test_mrtr_echo_state", &none).await?;
    peer.used(Op::Tool, "test_mrtr_unrelated", &none).await?;
    let Err(asked) = first else {
        return Err("it asked nothing".into());
    };
    if peer.answer(asked).await?.is_err() {
        return Err("it asked twice".into());
    }
    peer.used(Op::Tool, "test_mrtr_no_state", &none).await?;
    peer.used(Op::Tool, "test_mrtr_no_result_type", &none)
        .await?;
    Ok(())
}
