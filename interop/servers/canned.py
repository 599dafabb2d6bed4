"""A server over stdio whose results stand in a JSON file: {"method": result, "call": {"tool": result}}.

A result with the member "jsonrpc_error" is sent as that error. The file is read again for each request.
"""

import json
import sys

EMPTY = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
CAPABILITIES = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}


def answer(offer, request):
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        revision = offer.get("revision", "2025-11-25")
        capabilities = offer.get("capabilities", CAPABILITIES)
        return {"protocolVersion": revision, "capabilities": capabilities, "serverInfo": {"name": "canned", "version": "1"}}
    if method == "tools/call" and params.get("name") in offer.get("call", {}):
        return offer["call"][params["name"]]
    if method in EMPTY:
        return offer.get(method, {EMPTY[method]: []})
    return offer.get(method, {"jsonrpc_error": {"code": -32601, "message": "no such method"}})


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    with open(sys.argv[1], encoding="utf-8") as file:
        result = answer(json.load(file), request)
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    if isinstance(result, dict) and "jsonrpc_error" in result:
        reply["error"] = result["jsonrpc_error"]
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
