//! Tools with structured results: clients see the output schemas, and the server checks each result against its schema.
//!
//! `cargo run --example structured_output` serves over stdio. The book compares this program with the same in rmcp and in
//! FastMCP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate::{Server, Structured, ToolError, tool};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Units {
    Celsius,
    Fahrenheit,
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    city: String,
    temperature: f64,
    description: String,
    /// Relative humidity in percent.
    humidity: u8,
    /// Speed of the wind in kilometers per hour.
    wind_speed: f64,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Operation {
    Sum,
    Average,
    Product,
}

#[derive(Serialize, JsonSchema)]
struct Calculation {
    result: f64,
    operation: Operation,
    /// Count of the numbers.
    count: usize,
}

/// Returns the weather of a city.
#[tool(read_only)]
fn get_weather(
    /// Name of the city.
    city: String,
    /// Units of the temperature. Default: celsius.
    units: Option<Units>,
) -> Structured<Weather> {
    let temperature = match units.unwrap_or(Units::Celsius) {
        Units::Celsius => 22.5,
        Units::Fahrenheit => 72.5,
    };
    Structured(Weather {
        city,
        temperature,
        description: "Partly cloudy".to_owned(),
        humidity: 65,
        wind_speed: 12.5,
    })
}

/// Calculates with a list of numbers.
#[tool(read_only)]
fn calculate(
    /// The numbers; at least one.
    numbers: Vec<f64>,
    /// What to calculate.
    operation: Operation,
) -> Result<Structured<Calculation>, ToolError> {
    if numbers.is_empty() {
        return Err(ToolError::new("there are no numbers"));
    }
    let result = match operation {
        Operation::Sum => numbers.iter().sum(),
        Operation::Average => numbers.iter().sum::<f64>() / numbers.len() as f64,
        Operation::Product => numbers.iter().product(),
    };
    Ok(Structured(Calculation {
        result,
        operation,
        count: numbers.len(),
    }))
}

/// Describes the server.
#[tool(read_only)]
fn get_info() -> &'static str {
    "Structured output, version 1.0.0"
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), toolgate::ServeError> {
    let server = Server::new("structured", "1.0.0")
        .tool(get_weather)
        .tool(calculate)
        .tool(get_info);
    toolgate::stdio(server).await
}
