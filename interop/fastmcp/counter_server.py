"""A counter with tools, prompts and resources, with FastMCP. `crates/toolgate/examples/counter_server.rs` has the same
features with Toolgate."""

import asyncio
import json
from typing import Annotated

from fastmcp import FastMCP
from fastmcp.prompts import Message, PromptResult
from fastmcp.resources import TextResource
from fastmcp.server.dependencies import get_http_headers
from fastmcp.tools import Tool
from fastmcp.tools.base import ToolResult
from pydantic import Field

READ_ONLY = {"readOnlyHint": True}

mcp = FastMCP("counter", version="1.0.0", instructions="Counts up and down.")
value = 0


@mcp.tool
async def increment() -> str:
    """Adds 1 to the counter."""
    global value
    value += 1
    return str(value)


@mcp.tool
async def decrement() -> str:
    """Subtracts 1 from the counter."""
    global value
    value -= 1
    return str(value)


@mcp.tool(annotations=READ_ONLY)
async def get_value() -> str:
    """Returns the value of the counter."""
    return str(value)


@mcp.tool(annotations=READ_ONLY)
async def long_task() -> str:
    """Runs for ten seconds."""
    await asyncio.sleep(10)
    return "completed"


@mcp.tool(annotations=READ_ONLY)
async def say_hello() -> str:
    """Says hello."""
    return "hello"


class Echo(Tool):
    # A function cannot take arguments that its signature does not name.
    async def run(self, arguments: dict) -> ToolResult:
        return ToolResult(json.dumps(arguments, separators=(",", ":")))


mcp.add_tool(
    Echo(
        name="echo",
        description="Returns its arguments, whatever they are.",
        parameters={"type": "object"},
        annotations=READ_ONLY,
    )
)


@mcp.tool(annotations=READ_ONLY)
async def sum(
    a: Annotated[int, Field(description="First summand.")],
    b: Annotated[int, Field(description="Second summand.")],
) -> str:
    """Adds two numbers."""
    return str(a + b)


@mcp.tool(annotations=READ_ONLY)
async def get_session_id() -> str:
    """Returns the id of the HTTP session."""
    headers = get_http_headers(include={"mcp-session-id"})
    return headers.get("mcp-session-id", "no session")


@mcp.prompt(meta={"version": "1"})
def example_prompt(message: Annotated[str, Field(description="Message to put into the prompt.")]) -> str:
    """Puts a message into a prompt."""
    return f"This is an example prompt with your message: {message}"


@mcp.prompt
def counter_analysis(
    goal: Annotated[int, Field(description="Value to reach.")],
    strategy: Annotated[str, Field(description="Preferred strategy: fast or careful.")] = "careful",
) -> PromptResult:
    """Analyzes the counter and suggests the next steps."""
    analysis = (
        f"Value: {value}\nGoal: {goal}\nDifference: {goal - value}\nStrategy: {strategy}\n\nHow do I reach the goal?"
    )
    messages = [Message("I will analyze the counter.", role="assistant"), Message(analysis)]
    return PromptResult(messages, description=f"From {value} to {goal}")


mcp.add_resource(TextResource(uri="file:///srv/counter/", name="directory", text="/srv/counter"))
mcp.add_resource(TextResource(uri="memo://insights", name="insights", text="The counter counts."))


@mcp.resource("counter://{base}", name="value")
def value_in(base: str) -> str:
    match base:
        case "decimal":
            return str(value)
        case "hexadecimal":
            return f"{value:x}"
        case _:
            raise ValueError("there is no such resource")


if __name__ == "__main__":
    mcp.run()
