// Redirect page after a sign-in at an authorization server. It sends the response to the gateway, with the key of this session.

import { post } from "./api.js";
import { put, attr } from "./dom.js";

const $ = (id) => document.getElementById(id);
const query = location.search.slice(1);
// The code is valid once, and must not stay in the history.
history.replaceState(null, "", location.pathname);

const res = await post("/console/api/sign-in/end", { query });
if (res.ok) {
  const done = JSON.parse(res.text);
  put($("title"), "Signed in");
  put($("words"), `Signed in at ${done.issuer} for the server ${done.server}${done.caller ? `, only for the caller ${done.caller}` : ""}${done.scopes ? `, with the scope${done.scopes.includes(" ") ? "s" : ""} ${done.scopes}` : ""}.`);
} else {
  put($("title"), "Not signed in");
  put($("words"), "Nothing was changed.");
  put($("error"), res.status === 401 ? "this browser is not logged in to the console; open the link that `toolgate console` prints, and begin again" : res.error);
  attr($("error"), "hidden", false);
}
document.title = $("title").textContent + " \u00b7 Toolgate";
