"""One tool `ask` by the `MCPServer` of the Python `mcp` package, which asks for a name as the setting says: `way` is
"request" (`ctx.elicit()`) or "both" (a resolver, which asks by whichever way the connection has). Both eras are served,
over stdio or, with `http`, on a free port."""

import json
import socket
import sys
from typing import Annotated

import anyio
import uvicorn
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from pydantic import BaseModel

SETTING = json.loads(sys.argv[1])
SERVER = MCPServer("python", version="1.0.0")


class Name(BaseModel):
    name: str


async def by_request(ctx: Context) -> str:
    answer = await ctx.elicit("What is your name?", Name)
    return f"hello, {answer.data.name}" if answer.action == "accept" else f"you said {answer.action}"


async def question() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


async def by_both(name: Annotated[Name, Resolve(question)]) -> str:
    return f"hello, {name.name}"


SERVER.add_tool(by_request if SETTING["way"] == "request" else by_both, name="ask")


async def over_http():
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        print(json.dumps({"event": "listening", "url": url}), flush=True)
        config = uvicorn.Config(SERVER.streamable_http_app(), log_level="warning", lifespan="on")
        await uvicorn.Server(config).serve(sockets=[listener])


if SETTING.get("http"):
    anyio.run(over_http)
else:
    SERVER.run()
