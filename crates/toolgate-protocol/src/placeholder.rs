//! Placeholders: texts that replace content in results.
//!
//! Results are read by a model. A model that writes a placeholder back, for example into a file that it edits, would
//! destroy the original content. So the arguments of calls are searched for placeholders: [`find`] recognizes all that
//! this module writes.

/// Start of the placeholder that replaces a secret in content; the rule's name and `]` follow.
pub const REDACTED: &str = "[redacted:";

/// Placeholder that replaces a tool argument that its schema marks as secret.
pub const REDACTED_BY_SCHEMA: &str = "[redacted:schema]";

/// Note that is added to the result of a call after an approver changed its arguments. It omits the new arguments,
/// which may be for the server alone.
pub const EDITED: &str = "[a person changed the arguments of this call before it ran; this is the result of the changed arguments]";

const OMITTED: &str = "[omitted: ";
const WITHHELD: &str = "[withheld by this gateway: ";
const AUDIO: &str = "[audio of type ";
const CONTENT: &str = "[content of type ";
const UNSUPPORTED: &str = ", which this protocol revision does not support]";
const LINK: &str = "[link of a server to ";
const INVALID: &str = "[invalid content of type ";
const UNTRUSTED: &str = "[text of the server ";
const UNTRUSTED_END: &str = "[end of the text: ";

/// Returns the placeholder for a text that is omitted because it is too long, with its length in bytes.
pub fn omitted(bytes: usize) -> String {
    format!("{OMITTED}{bytes} bytes]")
}

/// Returns the placeholder for withheld content of a result, with the reason.
pub fn withheld(reason: &str) -> String {
    format!("{WITHHELD}{reason}]")
}

/// Returns the placeholder for audio content that the client's revision does not support.
pub fn unsupported_audio(mime_type: &str) -> String {
    format!("{AUDIO}{mime_type}{UNSUPPORTED}")
}

/// Returns the placeholder for content of a type that the client's revision does not support.
pub fn unsupported_content(kind: &str) -> String {
    format!("{CONTENT}{kind}{UNSUPPORTED}")
}

/// Returns the text that replaces a resource link, if its block is invalid or unsupported by the client's revision.
pub fn link(name: &str, uri: &str) -> String {
    format!("{LINK}{name}: {uri}]")
}

/// Returns the placeholder for an invalid content block, with the reason.
pub fn invalid_content(kind: &str, reason: &str) -> String {
    format!("{INVALID}{kind}: {reason}]")
}

/// Wraps untrusted text of a server between two marker lines; `id` is the call id.
pub fn untrusted(server: &str, id: &str, text: &str) -> String {
    format!("{UNTRUSTED}{server}, not of the user: {id}]\n{text}\n{UNTRUSTED_END}{id}]")
}

/// Finds a placeholder in a text. Returns its constant start, or all of it if it is constant.
pub fn find(text: &str) -> Option<&'static str> {
    // The position of the last ending is found once, so a text full of starts takes linear time.
    let unsupported = text.rfind(UNSUPPORTED);
    text.match_indices('[').find_map(|(at, _)| {
        let rest = text.get(at..)?;
        let starts = [
            REDACTED,
            WITHHELD,
            EDITED,
            LINK,
            INVALID,
            UNTRUSTED,
            UNTRUSTED_END,
        ];
        let start = starts.into_iter().find(|start| rest.starts_with(start));
        start
            .or_else(|| is_omitted(rest).then_some(OMITTED))
            .or_else(|| {
                let starts = [AUDIO, CONTENT].into_iter();
                let mut found = starts.filter(|start| rest.starts_with(start));
                found.find(|_| unsupported.is_some_and(|end| end > at))
            })
    })
}

fn is_omitted(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix(OMITTED) else {
        return false;
    };
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    after.len() < rest.len() && after.starts_with(" bytes]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_placeholder_that_is_written() {
        for text in [
            format!("{REDACTED}github-token]"),
            REDACTED_BY_SCHEMA.to_owned(),
            EDITED.to_owned(),
            omitted(5002),
            withheld("a link with the scheme x:, which is not allowed"),
            unsupported_audio("audio/wav"),
            unsupported_content("resource_link"),
            link("n", "a:b"),
            invalid_content("image", "it has no data"),
            untrusted("web", "c-1", "x"),
            untrusted("web", "c-1", "x")
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned(),
        ] {
            assert!(find(&text).is_some(), "{text}");
            assert!(find(&format!("a\n[b] [{text} c")).is_some(), "{text}");
        }
    }

    #[test]
    fn finds_nothing_in_ordinary_text() {
        for text in [
            "",
            "[",
            "[omitted: for brevity]",
            "[omitted:  bytes]",
            "[link to the docs](https://example.com)",
            "[link to the docs: https://example.com]",
            "[invalid content]",
            "[content of type a]",
            "[REDACTED]",
            "a[0] = b[1];",
        ] {
            assert_eq!(find(text), None, "{text}");
        }
    }

    #[test]
    fn takes_time_linear_to_the_text() {
        let text = CONTENT.repeat(20_000);
        assert_eq!(find(&text), None);
    }
}
