//! Paths of the MCP endpoint and of HTTP with SSE, with the view that each serves.

/// Path of the Streamable HTTP endpoint.
const MCP_PATH: &str = "/mcp";
/// Path of the event stream of the HTTP+SSE transport (2024-11-05).
const SSE_PATH: &str = "/sse";
/// Path to which clients of that stream post. The stream announces it from the root, as most servers do: some clients
/// append a relative reference to the origin without a slash.
const MESSAGES_PATH: &str = "/messages";

/// Transport of a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum McpTransport {
    /// Streamable HTTP.
    StreamableHttp,
    /// Event stream of HTTP with SSE.
    Sse,
    /// Messages to such a stream.
    Messages,
}

/// Parsed path of the MCP endpoint: `/mcp`, or `/mcp/NAME` for a view.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct McpPath<'a> {
    pub(crate) transport: McpTransport,
    /// Name of the view in the path.
    pub(crate) view: Option<&'a str>,
}

impl<'a> McpPath<'a> {
    /// Parses a path; `None` for any other route.
    pub(crate) fn parse(path: &'a str) -> Option<McpPath<'a>> {
        let transports = [
            (MCP_PATH, McpTransport::StreamableHttp),
            (SSE_PATH, McpTransport::Sse),
            (MESSAGES_PATH, McpTransport::Messages),
        ];
        transports.into_iter().find_map(|(base, transport)| {
            let view = match path.strip_prefix(base)? {
                "" => None,
                rest => Some(rest.strip_prefix('/').filter(|name| is_name(name))?),
            };
            Some(McpPath { transport, view })
        })
    }

    /// Returns the path to which clients of the event stream post.
    pub(crate) fn messages_path(&self) -> String {
        match self.view {
            Some(view) => format!("{MESSAGES_PATH}/{view}"),
            None => MESSAGES_PATH.to_owned(),
        }
    }

    /// Returns whether requests may be calls.
    pub(crate) fn has_calls(&self) -> bool {
        self.transport != McpTransport::Sse
    }
}

/// Returns whether a path segment can be the name of a view.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_view_of_a_path() {
        let view = |path| McpPath::parse(path).map(|path| (path.transport, path.view));
        use McpTransport::{Messages, Sse, StreamableHttp};
        assert_eq!(view("/mcp"), Some((StreamableHttp, None)));
        assert_eq!(view("/mcp/ops"), Some((StreamableHttp, Some("ops"))));
        assert_eq!(view("/sse/ops"), Some((Sse, Some("ops"))));
        assert_eq!(view("/messages/ops"), Some((Messages, Some("ops"))));
        for path in ["/", "/mcp/", "/mcp/a/b", "/mcpa", "/mcp//a", "/console/mcp"] {
            assert_eq!(view(path), None, "{path}");
        }
        let path = McpPath::parse("/sse/ops").map(|path| path.messages_path());
        assert_eq!(path.as_deref(), Some("/messages/ops"));
    }
}
