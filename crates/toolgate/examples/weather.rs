//! A server with one tool. It asks which unit to use, tells how far it is, and gives a result that programs can read.
//!
//! `cargo run --example weather` serves on standard input and output.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate::{Cx, HandlerExit, Server, Structured, handlers::ask, tool};

#[derive(Clone, Copy, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Kelvin,
}

/// What is expected of a day.
#[derive(JsonSchema, Serialize)]
struct Forecast {
    /// Of which place.
    place: String,
    temperature: f64,
    unit: Unit,
}

/// The weather of tomorrow.
#[tool(read_only)]
async fn forecast(
    /// City name or postal code.
    place: String,
    /// The unit of the temperature. The user is asked if it is left out.
    unit: Option<Unit>,
    cx: Cx,
) -> Result<Structured<Forecast>, HandlerExit> {
    let unit = match unit {
        Some(unit) => unit,
        // The first time this ends the call with a question; it comes again with the answer. So what stands before an
        // `ask` may run twice.
        None => {
            let answer = cx.ask("unit", ask::choice("Which unit?", ["celsius", "kelvin"]))?;
            match answer.as_str() {
                "kelvin" => Unit::Kelvin,
                _ => Unit::Celsius,
            }
        }
    };
    cx.progress(1.0, 2.0, "asking the station");
    let celsius = station(&place).await?;
    let temperature = match unit {
        Unit::Celsius => celsius,
        Unit::Kelvin => celsius + 273.15,
    };
    Ok(Structured(Forecast {
        place,
        temperature,
        unit,
    }))
}

/// A station that is always right about two cities.
async fn station(place: &str) -> Result<f64, HandlerExit> {
    match place {
        "Oslo" => Ok(4.5),
        "Rome" => Ok(18.0),
        _ => Err(HandlerExit::new(format!(
            "no station in {place}; there are Oslo and Rome"
        ))),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), toolgate::ServeError> {
    toolgate::stdio(Server::new("weather", "1.0.0").tool(forecast)).await
}
