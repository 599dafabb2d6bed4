"""The same tools by the Python `mcp` server; `tools.mjs` says what they do and what the setting is."""

import json
import socket
import sys

import anyio
import uvicorn
from mcp import MCPError, types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

SETTING = json.loads(sys.argv[1])
NUMBER = {"type": "number"}
QUESTION = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}


def tool(name, description, output=None, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    hints = types.ToolAnnotations(read_only_hint=True)
    return types.Tool(name=name, description=description, input_schema=schema, output_schema=output, annotations=hints)


SUM = {"type": "object", "properties": {"sum": NUMBER}, "required": ["sum"]}
TOOLS = [
    tool("echo", "Says it back.", text={"type": "string"}),
    tool("sum", "Adds two numbers.", SUM, a=NUMBER, b=NUMBER),
    tool("fail", "Fails, as tools do."),
    tool("slow", "Counts slowly.", to={"type": "integer"}),
    tool("grow", "Adds a tool."),
    tool("ask", "Asks for a name."),
]
LATER = tool("grown", "Came later.")
BUS = InMemorySubscriptionBus()


def note(line):
    if SETTING.get("notes"):
        with open(SETTING["notes"], "a", encoding="utf-8") as file:
            file.write(line + "\n")


def text(words, **more):
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], **more)


async def slow(ctx, to):
    try:
        for n in range(1, to + 1):
            await anyio.sleep(0.05)
            note(f"step {n}")
            await ctx.session.report_progress(n, to)
    except anyio.get_cancelled_exc_class():
        note("cancelled")
        raise
    note(f"counted to {to}")
    return text(f"counted to {to}")


async def grow(ctx):
    if LATER not in TOOLS:
        TOOLS.append(LATER)
    await BUS.publish(ToolsListChanged())
    return text("grown")


def ask(params):
    answer = (params.input_responses or {}).get("name")
    if answer is None:
        form = types.ElicitRequestFormParams(message="What is your name?", requested_schema=QUESTION)
        return types.InputRequiredResult(input_requests={"name": types.ElicitRequest(params=form)})
    return text(f"hello, {answer.content['name']}" if answer.action == "accept" else f"you said {answer.action}")


async def call(ctx, params):
    args = params.arguments or {}
    match params.name:
        case "echo":
            return text(args["text"])
        case "sum":
            total = {"sum": args["a"] + args["b"]}
            return text(json.dumps(total), structured_content=total)
        case "fail":
            return text("the printer is on fire", is_error=True)
        case "slow":
            return await slow(ctx, args["to"])
        case "grow":
            return await grow(ctx)
        case "grown":
            return text("here I am")
        case "ask":
            return ask(params)
    raise MCPError(types.INVALID_PARAMS, f"unknown tool: {params.name}")


async def tools(_ctx, _params):
    return types.ListToolsResult(tools=list(TOOLS))


async def over_http(app):
    # Named as TCP, or asyncio leaves Nagle's delay on: each answer goes out in two writes.
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        print(json.dumps({"event": "listening", "url": url}), flush=True)
        await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener])


async def main():
    server = Server(
        "python", version="1.0.0", on_list_tools=tools, on_call_tool=call, on_subscriptions_listen=ListenHandler(BUS)
    )
    if SETTING.get("http"):
        return await over_http(server.streamable_http_app())
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


anyio.run(main)
