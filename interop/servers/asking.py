"""A server of 2026-07-28 over stdio that asks in the middle of everything. It asks what its first argument, a file, has:
an object of questions, read anew for each request. What it was offered it appends to the second, a file of lines."""

import json
import sys

QUESTIONS, OFFERED = sys.argv[1], sys.argv[2]
OFFER = {
    "server/discover": {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
        "serverInfo": {"name": "asking", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
    "resources/list": {"resources": [{"uri": "test://a", "name": "a"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "prompts/list": {"prompts": [{"name": "greet"}]},
}
DONE = {
    "tools/call": {"content": [{"type": "text", "text": "answered"}]},
    "resources/read": {"contents": [{"uri": "test://a", "text": "answered"}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "answered"}}]},
}


def result(request):
    method, params = request["method"], request.get("params", {})
    if method in OFFER:
        return {"resultType": "complete", "ttlMs": 60000, "cacheScope": "public", **OFFER[method]}
    if method not in DONE:
        return None
    if "inputResponses" in params:
        return {"resultType": "complete", **DONE[method]}
    with open(OFFERED, "a") as file:
        offered = params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        file.write(json.dumps(offered) + "\n")
    with open(QUESTIONS) as file:
        return {"resultType": "input_required", "inputRequests": json.load(file)}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    found = result(message)
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if found is None:
        answer["error"] = {"code": -32601, "message": "method not found"}
    else:
        answer["result"] = found
    print(json.dumps(answer), flush=True)
