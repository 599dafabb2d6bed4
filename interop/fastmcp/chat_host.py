"""A host: a chat in which a model calls the tools of several servers, with FastMCP.
`crates/toolgate/examples/chat_host.rs` has the same features with Toolgate."""

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Protocol

from fastmcp import Client
from mcp.types import Tool

# Most tool calls for one message of the user.
MAX_ROUNDS = 10


@dataclass
class Message:
    role: str
    text: str


@dataclass
class ToolCall:
    name: str
    arguments: dict


class Model(Protocol):
    """A language model. A real one sends the messages and the tools to a provider."""

    async def reply(self, messages: list[Message], tools: list[Tool]) -> str | ToolCall: ...


class ScriptedModel:
    """A model that does what it is told: `call TOOL ARGUMENTS`, or `tools`."""

    async def reply(self, messages: list[Message], tools: list[Tool]) -> str | ToolCall:
        last = messages[-1] if messages else Message("assistant", "Hello!")
        match last.role:
            case "result":
                return f"The tool returned: {last.text}"
            case "error":
                return f"The tool failed: {last.text}"
            case "user" if last.text == "tools":
                return "\n".join(sorted(f"{tool.name}: {tool.description}" for tool in tools))
            case "user":
                return tool_call(last.text) or f"You said: {last.text}"
            case _:
                return last.text


def tool_call(text: str) -> ToolCall | None:
    match text.split(" ", 2):
        case ["call", name, arguments]:
            try:
                arguments = json.loads(arguments)
            except ValueError:
                return None
            return ToolCall(name, arguments) if isinstance(arguments, dict) else None
    return None


async def run(client: Client, call: ToolCall) -> Message:
    try:
        result = await client.call_tool(call.name, call.arguments, raise_on_error=False)
    except Exception as error:
        return Message("error", str(error))
    text = "\n".join(content.text for content in result.content if content.type == "text")
    return Message("error" if result.is_error else "result", text)


async def answer(model: Model, client: Client, tools: list[Tool], messages: list[Message]) -> str:
    """Lets the model call tools until it answers."""
    for _ in range(MAX_ROUNDS):
        match await model.reply(messages, tools):
            case ToolCall() as call:
                print(f"calling {call.name}")
                messages.append(await run(client, call))
            case text:
                messages.append(Message("assistant", text))
                return text
    return "That took too many calls."


async def main(path: str):
    with open(path) as file:
        config = json.load(file)
    messages = []
    # With several servers, the client prefixes each tool with the name of its server.
    async with Client(config) as client:
        tools = await client.list_tools()
        for line in sys.stdin:
            messages.append(Message("user", line.rstrip("\n")))
            print(await answer(ScriptedModel(), client, tools, messages), flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: chat_host CONFIG")
    asyncio.run(main(sys.argv[1]))
