//! Actions of each scenario. Most only list the tools and call each one.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::join;
use toolgate::Client;

use crate::answers::{self, User};
use crate::{Failed, arguments, signing_in};

/// Plays a scenario to its end.
///
/// # Errors
/// Something that the scenario needs does not work.
pub(crate) async fn play(scenario: &str, url: &str, context: &Value) -> Result<(), Failed> {
    let user = User::new();
    let login = signing_in::login(scenario, url, context)?;
    let server = answers::connect(url, user.clone(), login).await?;
    if scenario == "sep-2322-client-request-state" {
        between_rounds(&server, &user).await?;
    } else {
        user.go_on();
        simple(scenario, &server, context).await?;
    }
    server.close().await;
    Ok(())
}

async fn simple(scenario: &str, server: &Client, context: &Value) -> Result<(), Failed> {
    match scenario {
        "initialize" | "json-schema-ref-no-deref" => only_list(server).await,
        "request-metadata" => twice(server).await,
        "sep-2640-client-no-prefetch" => skills(server, false).await,
        load if load.starts_with("sep-2640-client-verify-") => skills(server, true).await,
        "http-standard-headers" => everything(server).await,
        "http-custom-headers" => given(server, context).await,
        "json-schema-2020-12-preservation" => echo_schema(server).await,
        _ => call_each(server).await,
    }
}

async fn only_list(server: &Client) -> Result<(), Failed> {
    server.tools().await?;
    Ok(())
}

async fn call_each(server: &Client) -> Result<(), Failed> {
    for tool in server.tools().await? {
        let arguments = arguments::that_fit(&tool.input_schema().to_value());
        server.call(tool.name(), arguments).await?;
    }
    Ok(())
}

/// Two requests besides those that open the server.
async fn twice(server: &Client) -> Result<(), Failed> {
    server.tools().await?;
    // The mock server has no resource; that it is asked for one is what counts.
    let _ = server.read("test://any").await;
    Ok(())
}

/// Every kind of thing, listed and used.
async fn everything(server: &Client) -> Result<(), Failed> {
    call_each(server).await?;
    for resource in server.resources().await? {
        server.read(resource.name()).await?;
    }
    for prompt in server.prompts().await? {
        server.prompt(prompt.name(), json!({})).await?;
    }
    Ok(())
}

/// The calls that the suite gives, after the list: it says which arguments are repeated as headers.
///
/// The suite takes a null for an argument that is not given. The schemas of its own tools do not, and the duties of a
/// client hold back what does not fit: so nulls are left out.
async fn given(server: &Client, context: &Value) -> Result<(), Failed> {
    server.tools().await?;
    for call in context["toolCalls"].as_array().into_iter().flatten() {
        let name = call["name"].as_str().unwrap_or_default();
        let mut arguments = call["arguments"].as_object().cloned().unwrap_or_default();
        arguments.retain(|_, value| !value.is_null());
        server.call(name, arguments).await?;
    }
    Ok(())
}

/// Sends back the schema of one tool to another.
async fn echo_schema(server: &Client) -> Result<(), Failed> {
    let all = server.tools().await?;
    let found = all
        .iter()
        .find(|tool| tool.name() == "json_schema_2020_12_tool");
    let schema = found
        .ok_or("the tool with the schema is not listed")?
        .input_schema();
    server
        .call("json_schema_echo", json!({"schema": schema.to_value()}))
        .await?;
    Ok(())
}

/// A call of another tool between the two rounds of one.
async fn between_rounds(server: &Client, user: &Arc<User>) -> Result<(), Failed> {
    let none = json!({});
    server.tools().await?;
    let (asking, between) = join!(server.call("test_mrtr_echo_state", &none), async {
        user.asked().await;
        let done = server.call("test_mrtr_unrelated", &none).await;
        user.go_on();
        done
    });
    asking?;
    between?;
    server.call("test_mrtr_no_state", &none).await?;
    server.call("test_mrtr_no_result_type", &none).await?;
    Ok(())
}

/// Lists the skills; loads each with all its files, where that is asked for.
async fn skills(server: &Client, load: bool) -> Result<(), Failed> {
    for skill in server.skills().await?.iter().filter(|_| load) {
        server.load_skill(skill).await?;
        let files = skill.definition().json().get("resources");
        for file in files.iter().flat_map(|files| files.items()) {
            let uri = file.get("uri").and_then(|uri| uri.string());
            server.skill_file(skill, &uri.unwrap_or_default()).await?;
        }
    }
    Ok(())
}
