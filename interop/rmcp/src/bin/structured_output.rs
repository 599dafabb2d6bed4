//! Tools with structured results, with rmcp. `crates/toolgate/examples/structured_output.rs` has the same features with
//! Toolgate.

use rmcp::{
    Json, ServiceExt,
    handler::server::wrapper::Parameters,
    schemars::{self, JsonSchema},
    tool, tool_router,
    transport::stdio,
};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Units {
    Celsius,
    Fahrenheit,
}

#[derive(Deserialize, JsonSchema)]
struct WeatherArgs {
    /// Name of the city.
    city: String,
    /// Units of the temperature. Default: celsius.
    units: Option<Units>,
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

#[derive(Deserialize, JsonSchema)]
struct CalculateArgs {
    /// The numbers; at least one.
    numbers: Vec<f64>,
    /// What to calculate.
    operation: Operation,
}

#[derive(Serialize, JsonSchema)]
struct Calculation {
    result: f64,
    operation: Operation,
    /// Count of the numbers.
    count: usize,
}

#[derive(Clone)]
struct StructuredOutput;

#[tool_router(server_handler)]
impl StructuredOutput {
    /// Returns the weather of a city.
    #[tool(annotations(read_only_hint = true))]
    fn get_weather(&self, Parameters(args): Parameters<WeatherArgs>) -> Json<Weather> {
        let temperature = match args.units.unwrap_or(Units::Celsius) {
            Units::Celsius => 22.5,
            Units::Fahrenheit => 72.5,
        };
        Json(Weather {
            city: args.city,
            temperature,
            description: "Partly cloudy".to_owned(),
            humidity: 65,
            wind_speed: 12.5,
        })
    }

    /// Calculates with a list of numbers.
    #[tool(annotations(read_only_hint = true))]
    fn calculate(
        &self,
        Parameters(args): Parameters<CalculateArgs>,
    ) -> Result<Json<Calculation>, String> {
        let numbers = &args.numbers;
        if numbers.is_empty() {
            return Err("there are no numbers".to_owned());
        }
        let result = match args.operation {
            Operation::Sum => numbers.iter().sum(),
            Operation::Average => numbers.iter().sum::<f64>() / numbers.len() as f64,
            Operation::Product => numbers.iter().product(),
        };
        Ok(Json(Calculation {
            result,
            operation: args.operation,
            count: numbers.len(),
        }))
    }

    /// Describes the server.
    #[tool(annotations(read_only_hint = true))]
    fn get_info(&self) -> String {
        "Structured output, version 1.0.0".to_owned()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    StructuredOutput.serve(stdio()).await?.waiting().await?;
    Ok(())
}
