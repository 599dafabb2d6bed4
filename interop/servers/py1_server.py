"""The same tools by the Python `mcp` 1.x server; `tools.mjs` says what they do and what the setting is."""

import contextlib
import json
import socket
import sys

import anyio
import uvicorn
from mcp import types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount

SETTING = json.loads(sys.argv[1])
NUMBER = {"type": "number"}
QUESTION = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}
SUM = {"type": "object", "properties": {"sum": NUMBER}, "required": ["sum"]}


def tool(name, description, output=None, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    hints = types.ToolAnnotations(readOnlyHint=True)
    return types.Tool(name=name, description=description, inputSchema=schema, outputSchema=output, annotations=hints)


TOOLS = [
    tool("echo", "Says it back.", text={"type": "string"}),
    tool("sum", "Adds two numbers.", SUM, a=NUMBER, b=NUMBER),
    tool("fail", "Fails, as tools do."),
    tool("slow", "Counts slowly.", to={"type": "integer"}),
    tool("grow", "Adds a tool."),
    tool("ask", "Asks for a name."),
]
LATER = tool("grown", "Came later.")


class Changing(Server):
    """Says that its list may change, whoever asks for the options."""

    def create_initialization_options(self, *_args, **_kwargs):
        return super().create_initialization_options(NotificationOptions(tools_changed=True))


SERVER = Changing("python-1", version="1.0.0")


def note(line):
    if SETTING.get("notes"):
        with open(SETTING["notes"], "a", encoding="utf-8") as file:
            file.write(line + "\n")


def text(words, **more):
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], **more)


async def slow(context, to):
    token = context.meta and context.meta.progressToken
    try:
        for n in range(1, to + 1):
            await anyio.sleep(0.05)
            note(f"step {n}")
            if token is not None:
                related = str(context.request_id)
                await context.session.send_progress_notification(token, n, to, related_request_id=related)
    except anyio.get_cancelled_exc_class():
        note("cancelled")
        raise
    note(f"counted to {to}")
    return text(f"counted to {to}")


async def ask(session):
    form = types.ElicitationCapability()
    if not session.check_client_capability(types.ClientCapabilities(elicitation=form)):
        return text("the client cannot be asked", isError=True)
    answer = await session.elicit("What is your name?", QUESTION)
    return text(f"hello, {answer.content['name']}" if answer.action == "accept" else f"you said {answer.action}")


@SERVER.list_tools()
async def tools():
    return TOOLS


@SERVER.call_tool()
async def call(name, args):
    context = SERVER.request_context
    match name:
        case "echo":
            return text(args["text"])
        case "sum":
            total = {"sum": args["a"] + args["b"]}
            return text(json.dumps(total), structuredContent=total)
        case "fail":
            return text("the printer is on fire", isError=True)
        case "slow":
            return await slow(context, args["to"])
        case "grow":
            if LATER not in TOOLS:
                TOOLS.append(LATER)
            await context.session.send_tool_list_changed()
            return text("grown")
        case "grown":
            return text("here I am")
        case "ask":
            return await ask(context.session)
    raise ValueError(f"unknown tool: {name}")


async def over_http():
    sessions = StreamableHTTPSessionManager(app=SERVER)

    @contextlib.asynccontextmanager
    async def lifespan(_app):
        async with sessions.run():
            yield

    app = Starlette(routes=[Mount("/mcp", app=sessions.handle_request)], lifespan=lifespan)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp/"
        print(json.dumps({"event": "listening", "url": url}), flush=True)
        await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener])


async def main():
    if SETTING.get("http"):
        return await over_http()
    async with stdio_server() as (reader, writer):
        await SERVER.run(reader, writer, SERVER.create_initialization_options())


anyio.run(main)
