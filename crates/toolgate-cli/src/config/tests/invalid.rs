use super::parse;

/// Checks that a config is rejected with this message at this position.
fn check(text: &str, error: &str) {
    assert_eq!(
        parse(text).expect_err(text),
        format!("toolgate.toml:{error}"),
        "{text}"
    );
}

/// Like `check`, with a valid server after the text.
fn above(text: &str, error: &str) {
    check(&format!("{text}\n[server.s]\ncommand = [\"x\"]\n"), error);
}

/// Like `check`, with the text inside a valid server, from line 3.
fn server(text: &str, error: &str) {
    check(&format!("[server.s]\ncommand = [\"x\"]\n{text}\n"), error);
}

/// Like `check`, with the text inside a rule, from line 4.
fn rule(text: &str, error: &str) {
    server(&format!("[[rule]]\n{text}"), error);
}

#[test]
fn keys() {
    check(
        "[server.s]\ncommand = [\"x\"]\n\n[server.files]\n\n\ncomand = [\"x\"]",
        "7:1: unknown key \"comand\" in [server.files]; did you mean \"command\"?",
    );
    above(
        "lisen = \"x\"",
        "1:1: unknown key \"lisen\"; did you mean \"listen\"?",
    );
    above(
        "x = 1",
        "1:1: unknown key \"x\"; expected one of: admin, allowed_hosts, allowed_origins, audit, auth, console, console_url, data, default_view, limits, listen, notify, passkeys, pins, proxy, rule, search, secret_rules, server, store, telemetry, tls, token, tool_names, view",
    );
    above(
        "[limits]\ncall_second = 1",
        "2:1: unknown key \"call_second\" in [limits]; did you mean \"call_seconds\"?",
    );
    above(
        "tool_names = \"dots\"",
        "1:14: \"tool_names\" is \"dots\"; write \"specification\" or \"portable\"",
    );
    above("[limits]\nfoo = 1", "2:1: unknown key \"foo\" in [limits]");
    server(
        "listen = \"x\"",
        "3:1: unknown key \"listen\" in [server.s]; it belongs at the top of the file, before the first [section]",
    );
    rule(
        "tool = []",
        "4:1: unknown key \"tool\" in [[rule]]; did you mean \"tools\"?",
    );
    check(
        "[servers.s]\ncommand = [\"x\"]",
        "1:2: unknown key \"servers\"; did you mean \"server\"?",
    );
    // The first of several errors in the order of the file.
    above(
        "z = 1\ny = 1",
        "1:1: unknown key \"z\"; expected one of: admin, allowed_hosts, allowed_origins, audit, auth, console, console_url, data, default_view, limits, listen, notify, passkeys, pins, proxy, rule, search, secret_rules, server, store, telemetry, tls, token, tool_names, view",
    );
}

#[test]
fn syntax() {
    above(
        "a = 1\na = 2",
        "2:1: the file is not valid TOML: duplicate key",
    );
    server(
        "[server.s]",
        "3:9: the file is not valid TOML: duplicate key",
    );
    above(
        "a = [1",
        "2:1: the file is not valid TOML: missing comma between array elements, expected `,`",
    );
    above(
        "a = \"x",
        "1:7: the file is not valid TOML: invalid basic string, expected `\"`",
    );
}

#[test]
fn types() {
    above(
        "listen = 1",
        "1:10: \"listen\" is an integer; write a string such as \"127.0.0.1:8665\"",
    );
    above(
        "allowed_hosts = \"x\"",
        "1:17: \"allowed_hosts\" is a string; write an array such as [\"tools.example.com\"]",
    );
    above(
        "allowed_origins = [1]",
        "1:20: \"allowed_origins\" is an integer; write a string in quotes",
    );
    above(
        "limits = 1",
        "1:10: \"limits\" is an integer; write a section that begins with [limits]",
    );
    above(
        "[limits]\ncalls = \"1\"",
        "2:9: \"calls\" in [limits] is a string; write an integer from 1 to 1000000 without quotes",
    );
    above(
        "[limits]\ncalls = 1.5",
        "2:9: \"calls\" in [limits] is a float; write an integer from 1 to 1000000",
    );
    check(
        "server = 1",
        "1:10: \"server\" is an integer; write sections that begin with [server.NAME]",
    );
    check(
        "server.s = []",
        "1:12: \"s\" in [server] is an array; write a section that begins with [server.s]",
    );
    check(
        "[server.s]\ncommand = \"npx x\"",
        "2:11: \"command\" in [server.s] is a string; write an array such as [\"program\", \"argument\"]",
    );
    check(
        "[server.s]\ncommand = [\"x\", 1]",
        "2:17: \"command\" in [server.s] is an integer; write a string in quotes",
    );
    server(
        "trust_annotations = \"yes\"",
        "3:21: \"trust_annotations\" in [server.s] is a string; write true or false without quotes",
    );
    server(
        "env = [\"A=1\"]",
        "3:7: \"env\" in [server.s] is an array; write { NAME = \"value\" }",
    );
    server(
        "env = { A = 1 }",
        "3:13: \"A\" in [server.s.env] is an integer; write a string in quotes, { env = \"NAME\" }, { file = \"PATH\" } or { keyring = \"NAME\" }",
    );
    server(
        "env_pass = true",
        "3:12: \"env_pass\" in [server.s] is a boolean; write an array such as [\"NAME\"]",
    );
    server(
        "[rule]\naction = \"ask\"",
        "3:1: \"rule\" is a table; write sections that begin with [[rule]]",
    );
}

#[test]
fn listening() {
    above(
        "listen = \"localhost:1\"",
        "1:10: \"listen\" is \"localhost:1\"; write an IP address and a port, such as \"127.0.0.1:8665\"",
    );
    above(
        "listen = \"0.0.0.0:8665\"",
        "1:10: other machines can reach 0.0.0.0:8665, so anyone could call the tools; set token, or required = true in [auth]",
    );
    assert!(
        parse("listen = \"0.0.0.0:8665\"\ntoken = { env = \"T\" }\n[server.s]\ncommand = [\"x\"]")
            .is_ok()
    );
    above(
        "allowed_hosts = [\"https://a.example.com\"]",
        "1:18: \"allowed_hosts\" has \"https://a.example.com\", which is not a host name; write it as a browser shows it, such as \"tools.example.com\" or \
         \"tools.example.com:8665\"",
    );
    above(
        "allowed_origins = [\"*\"]",
        "1:20: \"allowed_origins\" has \"*\", which is not an origin; write the scheme and the host without a path, such as \"https://app.example.com\"",
    );
}

#[test]
fn tokens() {
    above(
        "token = \"hunter2hunter2hunter2\"",
        "1:9: \"token\" would store a secret in plaintext in this file; write { env = \"NAME\" }, { file = \"PATH\" } or { keyring = \"NAME\" }",
    );
    above(
        "token = { env = \"a-b c\" }",
        "1:17: \"env\" in [token] is not a valid environment variable name; write the name of the variable, not its value",
    );
    above(
        "token = { env = \"T\", file = \"t\" }",
        "1:9: \"token\" must have exactly one key; write { env = \"NAME\" }, { file = \"PATH\" } or { keyring = \"NAME\" }",
    );
}

#[test]
fn limits() {
    above(
        "[limits]\ncall_seconds = 0",
        "2:16: \"call_seconds\" in [limits] is 0; write an integer from 1 to 86400",
    );
    above(
        "[limits]\ncall_seconds = -1",
        "2:16: \"call_seconds\" in [limits] is -1; write an integer from 1 to 86400",
    );
    above(
        "[limits]\ncall_max_seconds = 30",
        "2:20: call_seconds is 60, which is more than call_max_seconds (30); lower call_seconds, or raise call_max_seconds",
    );
    above(
        "[limits]\nmemory_bytes = 8388607",
        "2:16: \"memory_bytes\" in [limits] is 8388607; write an integer from 8388608 to 1099511627776",
    );
    above(
        "[limits]\nmemory_bytes = 67108864",
        "2:16: memory_bytes is 67108864, but two messages of the maximum size need 233417728 bytes; raise memory_bytes, or lower line_bytes, body_bytes or elements",
    );
    above(
        "[limits]\nrate = \"60/minute\"",
        "2:8: \"rate\" in [limits] is \"60/minute\"; write a count, \"/\" and s, min or h, such as \"30/min\"",
    );
    above(
        "[limits]\nrate = \"0/s\"",
        "2:8: \"rate\" in [limits] is \"0/s\"; write a count from 1 to 1000000, such as \"30/min\"",
    );
}

#[test]
fn cleaning() {
    for (line, wrong) in [
        (
            "secrets = \"of\"",
            "11: \"secrets\" in [server.s] is \"of\"; write \"redact\", \"warn\" or \"off\"",
        ),
        (
            "secrets = true",
            "11: \"secrets\" in [server.s] is a boolean; write \"redact\", \"warn\" or \"off\"",
        ),
        (
            "outbound_secrets = \"allow\"",
            "20: \"outbound_secrets\" in [server.s] is \"allow\"; write \"ask\", \"deny\", \"warn\" or \"off\"",
        ),
        (
            "placeholders = \"off\"",
            "16: \"placeholders\" in [server.s] is \"off\"; write \"ask\", \"deny\" or \"allow\"",
        ),
        (
            "uris = \"as they come\"",
            "8: \"uris\" in [server.s] is \"as they come\"; write \"canonical\" or \"verbatim\"",
        ),
        (
            "media = \"on\"",
            "9: \"media\" in [server.s] is \"on\"; write \"check\" or \"off\"",
        ),
        (
            "links = \"https\"",
            "9: \"links\" in [server.s] is \"https\"; write \"check\", \"off\" or an array such as [\"https\"]",
        ),
        (
            "links = [\"HTTPS\"]",
            "10: \"links\" in [server.s] contains \"HTTPS\", which is not a URI scheme in lower case; write one such as \"https\"",
        ),
        (
            "links = [\"https:\"]",
            "10: \"links\" in [server.s] contains \"https:\", which is not a URI scheme in lower case; write one such as \"https\"",
        ),
        (
            "links = [\"\"]",
            "10: \"links\" in [server.s] contains \"\", which is not a URI scheme in lower case; write one such as \"https\"",
        ),
        (
            "links = [1]",
            "10: \"links\" in [server.s] is an integer; write a string in quotes",
        ),
        (
            "error_text = \"none\"",
            "14: \"error_text\" in [server.s] is \"none\"; write \"message\" or \"class\"",
        ),
        (
            "mark_untrusted = \"on\"",
            "18: \"mark_untrusted\" in [server.s] is a string; write true or false without quotes",
        ),
    ] {
        server(line, &format!("3:{wrong}"));
    }
    above(
        "[limits]\nmedia_bytes = 1000",
        "2:15: \"media_bytes\" in [limits] is 1000; write an integer from 1024 to 1073741824",
    );
}

#[test]
fn servers() {
    check(
        "",
        "1:1: no server is configured; add one with `toolgate add`, or write [server.NAME] with command = [\"program\", \"argument\"]",
    );
    check(
        "[server.My_Files]\n",
        "1:9: the server id \"My_Files\" must consist of 1 to 32 characters from a-z, 0-9 and \"-\"; write for example [server.my-files]",
    );
    check(
        "[server.\"\"]\n",
        "1:9: the server id \"\" must consist of 1 to 32 characters from a-z, 0-9 and \"-\"; write for example [server.files]",
    );
    check(
        "[server.s]\n",
        "1:1: [server.s] has no \"command\"; write command = [\"program\", \"argument\"]",
    );
    check(
        "[server.s]\ncommand = []",
        "2:11: \"command\" in [server.s] is empty; write the program and its arguments, such as [\"program\", \"argument\"]",
    );
    check(
        "[server.s]\ncommand = [\"\"]",
        "2:11: \"command\" in [server.s] begins with an empty string; write the program as the first element",
    );
    check(
        "[server.s]\nurl = \"ftp://x\"",
        "2:7: \"url\" in [server.s] cannot be used: it does not begin with https:// or http://; write url = \"https://mcp.example.com/mcp\"",
    );
    check(
        "[server.s]\nurl = \"http://a.test/\"",
        "2:7: \"url\" in [server.s] cannot be used: http:// is allowed only for this machine, because anyone on the network path could read and change the traffic; write url = \"https://mcp.example.com/mcp\"",
    );
    check(
        "[server.s]\nurl = \"https://x\"\ncwd = \"y\"",
        "3:7: \"cwd\" in [server.s] is only valid for a server that the gateway starts, but this one has a url; keep one of the two",
    );
    check(
        "[server.s]\nurl = \"https://x\"\ncommand = [\"y\"]",
        "3:11: \"command\" in [server.s] is only valid for a server that the gateway starts, but this one has a url; keep one of the two",
    );
    check(
        "[server.s]\ncommand = [\"y\"]\nheaders = { A = \"b\" }",
        "3:11: \"headers\" in [server.s] is only valid for a server with a url; add url = \"https://mcp.example.com/mcp\", or remove it",
    );
    check(
        "[server.s]\nurl = \"https://x\"\nheaders = { Host = \"b\" }",
        "3:13: the header \"Host\" cannot be used: the protocol itself sets it; remove it",
    );
    check(
        "[server.s]\nurl = \"https://x\"\nheaders = { A = \"b\", a = { env = \"B\" } }",
        "3:22: \"a\" is set twice; keep one of the two",
    );
    check(
        "[server.s]\nurl = \"https://x\"\nheaders = { a = { env = \"B C\" } }",
        "3:25: \"env\" in [server.s.headers.a] is not a valid environment variable name; write the name of the variable, not its value",
    );
    server(
        "cwd = \"\"",
        "3:7: \"cwd\" in [server.s] is empty; write a path or remove the key",
    );
    server(
        "cwd = \"a\\u0000\"",
        "3:7: \"cwd\" in [server.s] contains a NUL character; remove it",
    );
    server(
        "prefix = \"a_b\"",
        "3:10: \"prefix\" in [server.s] is \"a_b\"; write at most 32 letters, digits and \"-\"",
    );
    server(
        "prefix = \"\"\n[server.t]\ncommand = [\"x\"]",
        "1:9: [server.s] has an empty prefix, which is only allowed for a single server; remove the key \"prefix\"",
    );
    server(
        "[server.t]\ncommand = [\"x\"]\nprefix = \"s\"",
        "3:9: [server.s] and [server.t] have the same prefix \"s\"; give one of them another prefix",
    );
    server(
        "call_seconds = 901",
        "3:16: \"call_seconds\" in [server.s] is 901; write an integer from 1 to 900, the value of call_max_seconds in [limits]",
    );
    server(
        "output = \"of\"",
        "3:10: \"output\" in [server.s] is \"of\"; write \"block\", \"warn\" or \"off\"",
    );
    server(
        "audit_mode = \"async\"",
        "3:14: \"audit_mode\" in [server.s] is \"async\"; write \"auto\", \"strict\" or \"end\"",
    );
    server(
        "audit_arguments = \"plain\"",
        "3:19: \"audit_arguments\" in [server.s] is \"plain\"; write \"rules\", \"digest\" or \"redacted\"",
    );
    server(
        "audit_results = 1",
        "3:17: \"audit_results\" in [server.s] is an integer; write \"digest\" or \"redacted\"",
    );
    server(
        "sampling = \"on\"",
        "3:12: \"sampling\" in [server.s] is \"on\"; write \"off\", \"ask\", or a rate such as \"20/h\"",
    );
    server(
        "sampling_tokens = 0",
        "3:19: \"sampling_tokens\" in [server.s] is 0; write an integer from 1 to 1000000",
    );
    server(
        "elicitation_forms = \"deny\"",
        "3:21: \"elicitation_forms\" in [server.s] is \"deny\"; write \"check\", \"warn\" or \"off\"",
    );
    server(
        "elicitation_urls = true",
        "3:20: \"elicitation_urls\" in [server.s] is a boolean; write \"check\" or \"off\"",
    );
    server(
        "roots = \"off\"",
        "3:9: \"roots\" in [server.s] is a string; write true or false without quotes",
    );
    server(
        "unknown_arguments = true",
        "3:21: \"unknown_arguments\" in [server.s] is a boolean; write \"refuse\" or \"allow\"",
    );
    server(
        "required_with_default = false",
        "3:25: \"required_with_default\" in [server.s] is a boolean; write \"optional\" or \"required\"",
    );
}

#[test]
fn environments() {
    let no = "is not a valid environment variable name; use letters, digits and \"_\", and begin with a letter or \"_\"";
    server("env = { \"A=B\" = \"\" }", &format!("3:9: \"A=B\" {no}"));
    server("env_pass = [\"AWS_*\"]", &format!("3:13: \"AWS_*\" {no}"));
    server(
        "env = { A = \"\" }\nenv_pass = [\"A\"]",
        "4:13: \"A\" is in env and in env_pass; keep one of the two",
    );
}

#[test]
fn rules() {
    rule(
        "action = \"deny\"",
        "3:1: [[rule]] has no \"tools\"; write tools = [\"server.*\"]",
    );
    rule(
        "tools = [\"*\"]",
        "3:1: [[rule]] has no \"action\"; write action = \"allow\", \"ask\" or \"deny\"",
    );
    rule(
        "tools = []\naction = \"deny\"",
        "4:9: \"tools\" in [[rule]] is empty, so it matches nothing; write [\"*\"] for every tool",
    );
    rule(
        "tools = [\"s\"]\naction = \"deny\"",
        "4:10: the glob \"s\" matches nothing, because full names begin with the server, as in server.tool; write \"s.*\"",
    );
    rule(
        "tools = [\"s.[ab]\"]\naction = \"deny\"",
        "4:10: the glob \"s.[ab]\" contains '[', but only * and ? are supported; write several globs instead",
    );
    rule(
        "tools = [\"\"]\naction = \"deny\"",
        "4:10: the glob is empty; write \"*\" for everything",
    );
    rule(
        "tools = [\"s.a b\"]\naction = \"deny\"",
        "4:10: the glob \"s.a b\" contains whitespace or a control character; write ? in its place",
    );
    rule(
        "tools = [\"S.*\"]\naction = \"deny\"",
        "4:10: the glob \"S.*\" names the server \"S\", which is not configured; did you mean \"s\"?",
    );
    let all = "tools = [\"*\"]\n";
    rule(
        &format!("{all}action = \"block\""),
        "5:10: \"action\" in [[rule]] is \"block\"; write \"allow\", \"ask\" or \"deny\"",
    );
    rule(
        &format!("{all}action = \"ask\"\ncallers = []"),
        "6:11: \"callers\" in [[rule]] is empty; remove it to match every caller",
    );
    let caller = |name: &str, error: &str| {
        let text = format!("{all}action = \"deny\"\ncallers = [\"*\", \"{name}\"]");
        rule(&text, &format!("6:17: there is no caller {error}"));
    };
    caller(
        "Key:ci",
        "\"Key:ci\": \"Key\" is not \"key\", \"group\", \"role\" or the name of an [auth.issuer] in this config; did you mean \"key:ci\"?",
    );
    caller(
        "corp:alice",
        "\"corp:alice\": \"corp\" is not \"key\", \"group\", \"role\" or the name of an [auth.issuer] in this config; expected one of: key, group",
    );
    caller(
        "corp:al@example.com",
        "\"corp:al@example.com\": \"corp\" is not \"key\", \"group\", \"role\" or the name of an [auth.issuer] in this config; expected one of: key, group",
    );
    caller(
        "ci",
        "\"ci\"; write \"key:ci\" for the caller with that API key, or for example \"anonymous@http\" for callers without credentials",
    );
    caller("token@htp", "\"token@htp\"; did you mean \"token@http\"?");
    rule(
        &format!("{all}action = \"ask\"\nexcept = [\"t.*\"]"),
        "6:11: the glob \"t.*\" names the server \"t\", which is not configured; expected one of: s",
    );
    rule(
        &format!("{all}action = \"ask\"\nrate = \"9\""),
        "6:8: \"rate\" in [[rule]] is \"9\"; write a count, \"/\" and s, min or h, such as \"30/min\"",
    );
    rule(
        &format!("{all}action = \"ask\"\nwhen = 'arg.a'"),
        "6:8: \"when\" in [[rule]] is not a valid condition: column 1: unknown name arg; did you mean args?",
    );
    rule(
        &format!("{all}action = \"ask\"\nwhen = 7"),
        "6:8: \"when\" in [[rule]] is an integer; write a string in quotes",
    );
    rule(
        &format!("{all}action = \"ask\"\nwhen = \"true{}\"", " ".repeat(4093)),
        "6:8: \"when\" in [[rule]] is not a valid condition: the condition is 4097 bytes long, and the limit is 4096; shorten it",
    );
}

#[test]
fn search() {
    let search = |text: &str, error: &str| server(&format!("[search]\n{text}"), error);
    search(
        "min_tool = 1",
        "4:1: unknown key \"min_tool\" in [search]; did you mean \"min_tools\"?",
    );
    search(
        "results = 51",
        "4:11: \"results\" in [search] is 51; write an integer from 1 to 50",
    );
    search(
        "bytes = 1",
        "4:9: \"bytes\" in [search] is 1; write an integer from 1024 to 1073741824",
    );
    search(
        "[[search.direct]]\ncallers = [\"a\"]",
        "4:1: [[search.direct]] has no \"tools\"; write tools = [\"server.*\"]",
    );
    search(
        "[[search.direct]]\ntools = [\"*\"]\ncallers = [\"keys:ci\"]",
        "6:12: there is no caller \"keys:ci\": \"keys\" is not \"key\", \"group\", \"role\" or the name of an [auth.issuer] in this config; did you mean \"key:ci\"?",
    );
    search(
        "[[search.direct]]\ntools = [\"t.*\"]",
        "5:10: the glob \"t.*\" names the server \"t\", which is not configured; expected one of: s",
    );
    rule(
        "tools = [\"toolgate.*\"]\naction = \"deny\"",
        "4:10: the glob \"toolgate.*\" names the server \"toolgate\", which is not configured; expected one of: s",
    );
    check(
        "[server.toolgate]\ncommand = [\"x\"]\n[search]\n",
        "3:1: [search] and [server.toolgate] conflict: rules name the tools of [search] toolgate.*; give the server another name",
    );
}

/// Every position that rejects a plaintext secret, and the suggested alternative; never the value.
#[test]
fn no_secret_stands_in_clear() {
    let token = format!("ghp_{}", "a4Gs".repeat(9));
    let child = |line: &str| format!("[server.s]\ncommand = [\"x\"]\n{line}");
    let far = |line: &str| format!("[server.s]\nurl = \"https://a.test/\"\n{line}");
    let write = "write { env = \"NAME\" }, { file = \"PATH\" } or { keyring = \"NAME\" }; if it is not a secret, write { danger_clear = \"…\" }";
    for (text, place) in [
        (
            child("env = { API_KEY = \"canary\" }"),
            "3:19: \"API_KEY\" in [server.s.env] has the name of a secret",
        ),
        (
            child(&format!("env = {{ A = \"{token}\" }}")),
            "3:13: \"A\" in [server.s.env] looks like a secret (github-token)",
        ),
        (
            far("headers = { Authorization = \"Basic canary\" }"),
            "3:29: \"Authorization\" in [server.s.headers] has the name of a secret",
        ),
        (
            far("headers = { Cookie = \"canary\" }"),
            "3:22: \"Cookie\" in [server.s.headers] has the name of a secret",
        ),
        (
            far(&format!("headers = {{ A = \"{token}\" }}")),
            "3:17: \"A\" in [server.s.headers] looks like a secret (github-token)",
        ),
    ] {
        let told = parse(&text).unwrap_err();
        assert_eq!(
            told,
            format!("toolgate.toml:{place}, and would be in plaintext in this file; {write}")
        );
    }
    let command = |words: &str| format!("[server.s]\ncommand = [\"x\", {words}]");
    for (text, part) in [
        (
            command("\"--api-key=canary\""),
            "2:17: \"command\" in [server.s] has an argument that has the name",
        ),
        (
            command("\"--token\", \"canary\""),
            "write env = { NAME = { env = \"NAME\" } }; otherwise write { danger_clear",
        ),
        (
            "[server.s]\nurl = \"https://a.test/?key=canary\"".to_owned(),
            "2:7: \"url\" in [server.s] has a query parameter \"key\" that has the name",
        ),
        (
            child("tools.a.arguments = { api_key = \"canary\" }"),
            "write { env = \"NAME\" }",
        ),
        (
            "token = \"canary\"\n[server.s]\ncommand = [\"x\"]".to_owned(),
            "would store a secret in plaintext",
        ),
        (
            "token = { danger_clear = \"canary\" }\n[server.s]\ncommand = [\"x\"]".to_owned(),
            "would store a secret in plaintext",
        ),
        (
            child("env = { API_KEY = { env = \"canary canary\" } }"),
            "is not a valid environment variable name",
        ),
        (
            child("env = { API_KEY = { keyring = \"-canary\" } }"),
            "is not a valid name for a keyring entry",
        ),
        (
            far("client_id = \"a\"\nclient_secret = \"canary\""),
            "would store a secret in plaintext",
        ),
        (
            child("env = { API_KEY = { vault = \"canary\" } }"),
            "has the unknown key \"vault\"; write { env",
        ),
    ] {
        let told = parse(&text).unwrap_err();
        assert!(
            told.contains(part) && !told.contains("canary"),
            "{text}\n{told}"
        );
    }
    for fine in [
        child(
            "env = { API_KEY = { env = \"A\" }, B = { file = \"b\" }, C_TOKEN = { keyring = \"c/d\" } }",
        ),
        child("env = { SORT_KEY = { danger_clear = \"name\" }, GITHUB_TOOLSETS = \"repos\" }"),
        command("\"--api-key\", { danger_clear = \"canary\" }"),
        "[server.s]\nurl = { danger_clear = \"https://a.test/?key=canary\" }".to_owned(),
        far("headers = { X-Api-Key = { keyring = \"search\" } }"),
        child("tools.a.arguments = { sort_key = { danger_clear = \"name\" } }"),
    ] {
        let config = parse(&fine).unwrap();
        assert!(!format!("{config:?}").contains("canary"), "{fine}");
    }
}
