//! Servers over stdio that misbehave, each in one way, as shell scripts.

/// Name, what a call does (`$id` is the request's), and whether the process ends by it.
pub(super) const ALL: &[(&str, &str, bool)] = &[
    ("crashes", "exit 3", true),
    ("hangs", ":", false),
    ("never-starts", "EXIT", true),
    ("never-speaks", "SILENT", false),
    ("garbage", r"printf 'panic: \033[2J oh no\n{\n\n'", false),
    (
        "slow",
        r#"for c in '{' '"' j s o n; do printf "$c"; sleep 1; done"#,
        false,
    ),
    (
        "half-an-answer",
        r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"cont' "$id""#,
        false,
    ),
    (
        "half-and-gone",
        r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"cont' "$id"; exit 0"#,
        true,
    ),
    (
        "too-long",
        r#"printf '{"jsonrpc":"2.0","id":%s,"result":"' "$id"; head -c 3000000 /dev/zero | tr '\0' x; printf '"}\n'"#,
        false,
    ),
    (
        "not-asked",
        r#"printf '{"jsonrpc":"2.0","id":987654321,"result":{}}\n{"jsonrpc":"2.0","id":"no","result":{}}\n'"#,
        false,
    ),
    (
        "twice",
        r#"say '{"content":[]}'; say '{"content":[]}'"#,
        false,
    ),
    ("no-object", "say 7", false),
    (
        "both",
        r#"printf '{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"x"}}\n' "$id""#,
        false,
    ),
    (
        "floods",
        r#"i=0; while [ $i -lt 20000 ]; do printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}\n' $i; i=$((i+1)); done; say '{"content":[]}'"#,
        false,
    ),
    ("closes", "exec 1>&-; sleep 99", true),
    (
        "stderr",
        r#"head -c 30000000 /dev/zero | tr '\0' e >&2; say '{"content":[]}'"#,
        false,
    ),
];

const SERVE: &str = r#"while IFS= read -r line; do
id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
case "$line" in
*'"initialize"'*) say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}';;
*'"tools/list"'*) say '{"tools":[{"name":"do","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}';;
*'"tools/call"'*) CALL;;
*'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
esac; done"#;

/// Its section of the config.
pub(super) fn section((id, call, _): &(&str, &str, bool)) -> String {
    let script = match *call {
        "EXIT" => "exit 1".to_owned(),
        "SILENT" => "sleep 99".to_owned(),
        call => SERVE.replace("CALL", call),
    };
    format!("[server.{id}]\ncommand = [\"sh\", \"-c\", {script:?}]\ntrust_annotations = true\n")
}
