"""One tool `ask` by FastMCP, which asks for a name as the setting says: `way` is "request" (`ctx.elicit()`) or "result".
Both eras are served, over stdio or, with `http`, on a free port."""

import json
import socket
import sys

import anyio
import uvicorn
from fastmcp import Context, FastMCP
from mcp import types
from pydantic import BaseModel

SETTING = json.loads(sys.argv[1])
QUESTION = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}


class Name(BaseModel):
    name: str


SERVER = FastMCP("fastmcp", version="1.0.0")


async def by_request(ctx: Context) -> str:
    answer = await ctx.elicit("What is your name?", Name)
    return f"hello, {answer.data.name}" if answer.action == "accept" else f"you said {answer.action}"


async def by_result(ctx: Context):
    answer = (ctx.input_responses or {}).get("name")
    if answer is None:
        form = types.ElicitRequestFormParams(message="What is your name?", requested_schema=QUESTION)
        return types.InputRequiredResult(input_requests={"name": types.ElicitRequest(params=form)})
    return f"hello, {answer.content['name']}" if answer.action == "accept" else f"you said {answer.action}"


SERVER.tool(by_request if SETTING["way"] == "request" else by_result, name="ask", annotations={"readOnlyHint": True})


async def over_http():
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        print(json.dumps({"event": "listening", "url": url}), flush=True)
        config = uvicorn.Config(SERVER.http_app(path="/mcp"), log_level="warning", lifespan="on")
        await uvicorn.Server(config).serve(sockets=[listener])


if SETTING.get("http"):
    anyio.run(over_http)
else:
    SERVER.run(show_banner=False, log_level="error")
