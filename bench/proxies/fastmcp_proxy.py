"""The proxy of FastMCP in front of the server of `--url`. Prints its own URL as JSON."""

import json
import socket
import sys

import anyio
import uvicorn
from fastmcp.server import create_proxy

PROXY = create_proxy(sys.argv[sys.argv.index("--url") + 1], name="proxy")


async def main():
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        print(json.dumps({"url": url}), flush=True)
        config = uvicorn.Config(PROXY.http_app(path="/mcp"), log_level="warning", lifespan="on")
        await uvicorn.Server(config).serve(sockets=[listener])


anyio.run(main)
