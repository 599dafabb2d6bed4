//! Completion functions that attributes name, at prompts and resource templates.

use super::peer::{NEWEST_REVISION, Peer};
use serde_json::{Value, json};
use toolgate::{Cx, HandlerExit, Server, ToolError, prompt, template, tools};

/// Cities by country.
struct Atlas {
    cities: [(&'static str, &'static str); 3],
}

#[tools]
impl Atlas {
    /// Describes a city.
    #[prompt(complete(city = Self::cities, whom = Self::readers))]
    fn describe(
        &self,
        city: String,
        country: Option<String>,
        #[serde(rename = "for")] whom: Option<String>,
    ) -> String {
        format!("{city} {country:?} {whom:?}")
    }

    /// Map of a country.
    #[template("atlas:///{country}/{scale}", complete(country = Self::countries, scale = scales))]
    fn map(&self, country: String, scale: u8) -> String {
        format!("{country} {scale}")
    }

    /// With state and context.
    async fn cities(&self, typed: String, cx: Cx) -> Result<Vec<String>, ToolError> {
        if typed.contains('!') {
            return Err(ToolError::new("no city has this character"));
        }
        let country = cx.context_argument("country");
        let of = |own: &str| country.as_deref().is_none_or(|country| country == own);
        let cities = self.cities.iter().filter(|(_, country)| of(country));
        let names = cities.map(|(city, _)| (*city).to_owned());
        Ok(names.filter(|city| city.starts_with(&typed)).collect())
    }

    /// With state only.
    fn countries(&self, typed: String) -> Vec<&'static str> {
        let countries = self.cities.iter().map(|(_, country)| *country);
        countries.filter(|c| c.starts_with(&typed)).collect()
    }

    /// With neither.
    fn readers(typed: String) -> [String; 2] {
        [format!("{typed}1"), format!("{typed}2")]
    }
}

async fn scales(typed: String, _cx: Cx) -> Result<Vec<String>, HandlerExit> {
    Ok(vec![format!("{typed}0")])
}

/// Greets.
#[prompt(complete(name = scales))]
fn greet(name: String) -> String {
    name
}

/// Coast of a country.
#[template("coast:///{country}", complete(country = scales))]
fn coast(country: String) -> String {
    country
}

/// Has nothing to complete.
#[prompt]
fn plain(name: String) -> String {
    name
}

fn atlas() -> Atlas {
    Atlas {
        cities: [
            ("Bergen", "Norway"),
            ("Oslo", "Norway"),
            ("Bern", "Switzerland"),
        ],
    }
}

async fn complete(peer: &mut Peer, of: Value, argument: (&str, &str), context: Value) -> Value {
    let argument = json!({"name": argument.0, "value": argument.1});
    let params = json!({"ref": of, "argument": argument, "context": {"arguments": context}});
    peer.result("completion/complete", params).await["completion"]["values"].take()
}

#[tokio::test]
async fn functions_of_the_block_see_the_state_and_the_other_arguments() {
    let server = Server::new("atlas", "1").tools(atlas()).build().unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    let prompt = json!({"type": "ref/prompt", "name": "describe"});
    let template = json!({"type": "ref/resource", "uri": "atlas:///{country}/{scale}"});
    for (of, argument, context, expected) in [
        (
            &prompt,
            ("city", "Ber"),
            json!({}),
            json!(["Bergen", "Bern"]),
        ),
        (
            &prompt,
            ("city", "Ber"),
            json!({"country": "Norway"}),
            json!(["Bergen"]),
        ),
        (&prompt, ("for", "a"), json!({}), json!(["a1", "a2"])),
        (&prompt, ("country", "N"), json!({}), json!([])),
        (
            &template,
            ("country", "S"),
            json!({}),
            json!(["Switzerland"]),
        ),
        (&template, ("scale", "1"), json!({}), json!(["10"])),
    ] {
        let values = complete(&mut peer, of.clone(), argument, context).await;
        assert_eq!(values, expected, "{argument:?}");
    }
    let params = json!({"ref": prompt, "argument": {"name": "city", "value": "!"}});
    let error = peer.error("completion/complete", params).await;
    let text = error["message"].as_str().unwrap();
    assert!(text.contains("no city has this character"), "{error}");
}

#[tokio::test]
async fn functions_complete_prompts_and_templates_outside_of_blocks() {
    let server = Server::new("greetings", "1").prompt(greet).template(coast);
    let mut peer = Peer::open(&server.build().unwrap(), NEWEST_REVISION, json!({})).await;
    let prompt = json!({"type": "ref/prompt", "name": "greet"});
    let template = json!({"type": "ref/resource", "uri": "coast:///{country}"});
    for (of, argument) in [(prompt, "name"), (template, "country")] {
        let values = complete(&mut peer, of, (argument, "7"), json!({})).await;
        assert_eq!(values, json!(["70"]));
    }
}

#[tokio::test]
async fn the_capability_is_declared_exactly_with_a_completion_function() {
    let server = || Server::new("s", "1").prompt(plain);
    for (server, expected) in [
        (server(), false),
        (server().prompt(greet), true),
        (server().template(coast), true),
        (server().tools(atlas()), true),
    ] {
        let opened = Peer::opened(&server.build().unwrap(), "2025-11-25").await;
        let capabilities = &opened["capabilities"];
        assert_eq!(
            capabilities["completions"].is_object(),
            expected,
            "{opened}"
        );
    }
}

#[tokio::test]
async fn a_call_has_no_context_arguments() {
    /// Returns the argument of another completion.
    #[prompt]
    fn context(cx: Cx) -> String {
        format!("{:?}", cx.context_argument("country"))
    }

    let server = Server::new("s", "1").prompt(context).build().unwrap();
    let mut peer = Peer::open(&server, NEWEST_REVISION, json!({})).await;
    let result = peer.result("prompts/get", json!({"name": "context"})).await;
    assert_eq!(result["messages"][0]["content"]["text"], "None");
}
