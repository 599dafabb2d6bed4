"""Tools with structured results, with FastMCP. `crates/toolgate/examples/structured_output.rs` has the same features with
Toolgate."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from pydantic import Field

READ_ONLY = {"readOnlyHint": True}
Operation = Literal["sum", "average", "product"]

mcp = FastMCP("structured", version="1.0.0")


@dataclass
class Weather:
    city: str
    temperature: float
    description: str
    humidity: Annotated[int, Field(description="Relative humidity in percent.")]
    wind_speed: Annotated[float, Field(description="Speed of the wind in kilometers per hour.")]


@dataclass
class Calculation:
    result: float
    operation: Operation
    count: Annotated[int, Field(description="Count of the numbers.")]


@mcp.tool(annotations=READ_ONLY)
def get_weather(
    city: Annotated[str, Field(description="Name of the city.")],
    units: Annotated[
        Literal["celsius", "fahrenheit"], Field(description="Units of the temperature. Default: celsius.")
    ] = "celsius",
) -> Weather:
    """Returns the weather of a city."""
    temperature = 22.5 if units == "celsius" else 72.5
    return Weather(city, temperature, "Partly cloudy", 65, 12.5)


@mcp.tool(annotations=READ_ONLY)
def calculate(
    numbers: Annotated[list[float], Field(description="The numbers; at least one.")],
    operation: Annotated[Operation, Field(description="What to calculate.")],
) -> Calculation:
    """Calculates with a list of numbers."""
    if not numbers:
        raise ToolError("there are no numbers")
    match operation:
        case "sum":
            result = sum(numbers)
        case "average":
            result = sum(numbers) / len(numbers)
        case "product":
            result = math.prod(numbers)
    return Calculation(result, operation, len(numbers))


@mcp.tool(annotations=READ_ONLY, output_schema=None)
def get_info() -> str:
    """Describes the server."""
    return "Structured output, version 1.0.0"


if __name__ == "__main__":
    mcp.run()
