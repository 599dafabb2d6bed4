//! Detail of one request: everything an approver has to see, as lines.

use super::{
    gateway_poll::ActiveFreeze,
    pending_request::PendingRequest,
    wrap::{WrappedRow, wrap_line},
};

/// Returns the rows of a request. Labels begin a line; untrusted text follows its label or is indented.
pub(super) fn detail_rows(
    request: &PendingRequest,
    freezes: &[ActiveFreeze],
    width: u16,
) -> Vec<WrappedRow> {
    let mut rows = Vec::new();
    let mut line = |text: String, is_bold: bool| wrap_line(&text, width, is_bold, &mut rows);
    if let Some(end) = &request.end {
        line(format!("Ended      {end}"), true);
    }
    line(
        format!("Tool       {}.{}", request.server, request.tool),
        true,
    );
    if !request.title.is_empty() && request.title != request.tool {
        line(format!("Title      {}", request.title), false);
    }
    line(format!("Claims     {}", claims(request)), false);
    for reason in &request.reasons {
        line(format!("Rule       {reason}"), false);
    }
    let client = request.client.as_deref();
    let client = client.map_or(String::new(), |client| format!(" ({client})"));
    line(format!("Caller     {}{client}", request.caller), false);
    line(format!("           {}", presence(request)), false);
    for freeze in freezes.iter().filter(|freeze| applies(freeze, request)) {
        let reason = match freeze.reason.is_empty() {
            true => String::new(),
            false => format!(": {}", freeze.reason),
        };
        let what = format!("Frozen     {} by {}{reason}", freeze.what, freeze.by);
        line(what, true);
    }
    if request.required_approvers > 1 {
        let so_far = request.approvers.join(", ");
        let needed = request.required_approvers;
        line(
            format!("Approvers  {needed} are needed; so far: {so_far}"),
            false,
        );
    }
    line(
        format!("IDs        approval {}, call {}", request.id, request.call),
        false,
    );
    line("Arguments".to_owned(), true);
    for text in request.arguments_pretty.split('\n') {
        line(format!("  {text}"), false);
    }
    if !request.description.is_empty() {
        line("Description, by the server".to_owned(), true);
        for text in request.description.split('\n') {
            line(format!("  {text}"), false);
        }
    }
    rows
}

/// Returns the rows of a diff or another text of several lines.
pub(super) fn text_rows(text: &str, width: u16) -> Vec<WrappedRow> {
    let mut rows = Vec::new();
    for line in text.trim_end_matches('\n').split('\n') {
        wrap_line(line, width, false, &mut rows);
    }
    rows
}

fn applies(freeze: &ActiveFreeze, request: &PendingRequest) -> bool {
    freeze.what == "all"
        || freeze.what.strip_prefix("caller ") == Some(&request.caller)
        || freeze.what.strip_prefix("server ") == Some(&request.server)
}

fn claims(request: &PendingRequest) -> String {
    if request.kind != "tool" {
        return format!("a {}, not a tool", request.kind);
    }
    let mut words = vec![match request.read_only {
        true => "read-only",
        false => "not read-only",
    }];
    if request.is_destructive() {
        words.push("destructive");
    }
    if request.open_world {
        words.push("reaches external systems");
    }
    let source = match request.trusted {
        true => "claimed by the server, trusted by your config",
        false => "claimed by the server, not verified",
    };
    format!("{} ({source})", words.join(", "))
}

fn presence(request: &PendingRequest) -> &'static str {
    match (request.is_awaited, request.is_local) {
        (true, _) => "waits for the decision",
        (false, true) => "no longer waits; an approval is valid for the identical call",
        (false, false) => {
            "received by another gateway or before a restart; an approval is valid for the identical call"
        }
    }
}
