//! Matching of URIs against URI templates (RFC 6570), with the values of variables.
//!
//! A variable matches up to the next literal of the template: at least one character, and no `/` except in `{+name}`,
//! `{#name}` and `{name*}`. `{?a,b}` and `{&a,b}` match a query in any order. There is no backtracking, so the time is
//! linear in template plus URI; a query takes its pairs times the names of the template.

/// Returns true if a complete URI matches a URI template ([RFC 6570]).
///
/// [RFC 6570]: https://www.rfc-editor.org/rfc/rfc6570
pub fn matches_template(template: &str, uri: &str) -> bool {
    variables(template, uri).is_some()
}

/// Returns the values of the template's variables in a URI, still percent-encoded; `None` if the URI does not match the
/// template.
pub fn variables(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    let (mut template, mut uri) = (template, uri);
    while let Some((literal, rest)) = template.split_once('{') {
        uri = uri.strip_prefix(literal)?;
        let (expression, after) = rest.split_once('}')?;
        template = after;
        let next = variable_end(after);
        uri = match_expression(expression, next, uri, &mut found)?;
    }
    (uri == template).then_some(found)
}

/// Returns the end of a variable: the next literal, or the prefix character of the next expression.
fn variable_end(after: &str) -> &str {
    match after.strip_prefix('{') {
        Some(expression) if expression.starts_with(['/', '.', ';', '?', '&', '#']) => {
            expression.get(..1).unwrap_or_default()
        }
        _ => after.split('{').next().unwrap_or_default(),
    }
}

/// Matches an expression. Returns the rest of the URI.
fn match_expression<'a>(
    expression: &str,
    next: &str,
    uri: &'a str,
    found: &mut Vec<(String, String)>,
) -> Option<&'a str> {
    let operator = expression.chars().next().filter(|c| "+#./;?&".contains(*c));
    let names = expression.trim_start_matches(|c| Some(c) == operator);
    if matches!(operator, Some('?' | '&')) {
        return match_query(names, uri, found);
    }
    let uri = match operator {
        Some(mark @ ('#' | '.' | '/' | ';')) => uri.strip_prefix(mark)?,
        _ => uri,
    };
    let wide = matches!(operator, Some('+' | '#')) || names.ends_with('*');
    let end = match next {
        "" => uri.len(),
        // The query may be absent.
        "?" => uri.find('?').unwrap_or(uri.len()),
        next => {
            let first = uri.chars().next().map_or(0, char::len_utf8);
            first + uri[first..].find(next)?
        }
    };
    let (value, rest) = uri.split_at(end);
    if value.is_empty() || (!wide && value.contains('/')) {
        return None;
    }
    let name = names.trim_end_matches('*').split(':').next()?;
    found.push((name.to_owned(), value.to_owned()));
    Some(rest)
}

/// Matches the rest of the URI as a query of the named variables, each of which may be absent.
fn match_query<'a>(
    names: &str,
    uri: &'a str,
    found: &mut Vec<(String, String)>,
) -> Option<&'a str> {
    if uri.is_empty() {
        return Some(uri);
    }
    let pairs = uri.strip_prefix(['?', '&'])?;
    for pair in pairs.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !names
            .split(',')
            .any(|name| name.trim_end_matches('*') == key)
        {
            return None;
        }
        found.push((key.to_owned(), value.to_owned()));
    }
    Some("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_uris_that_a_template_can_expand_to() {
        let check = |template: &str, uri: &str, expected: Option<&[(&str, &str)]>| {
            let expected = expected.map(|pairs| {
                pairs
                    .iter()
                    .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                    .collect::<Vec<_>>()
            });
            assert_eq!(variables(template, uri), expected, "{template} on {uri}");
        };
        check(
            "test://template/{id}/data",
            "test://template/123/data",
            Some(&[("id", "123")]),
        );
        check("test://template/{id}/data", "test://template//data", None);
        check(
            "test://template/{id}/data",
            "test://template/1/2/data",
            None,
        );
        check("test://template/{id}/data", "test://template/1/datax", None);
        check("file:///{path}", "file:///a/b", None);
        check("file:///{+path}", "file:///a/b", Some(&[("path", "a/b")]));
        check("file:///{path*}", "file:///a/b", Some(&[("path", "a/b")]));
        check("a{/b}{/c}", "a/1/2", Some(&[("b", "1"), ("c", "2")]));
        check("a://{x}-{y}", "a://1-2", Some(&[("x", "1"), ("y", "2")]));
        check(
            "a://s{?q,n}",
            "a://s?n=2&q=1",
            Some(&[("n", "2"), ("q", "1")]),
        );
        check("a://s{?q,n}", "a://s", Some(&[]));
        check("a://{s}{?q}", "a://x?q=1", Some(&[("s", "x"), ("q", "1")]));
        check("a://{s}{?q}", "a://x", Some(&[("s", "x")]));
        check("a://s{?q,n}", "a://s?z=1", None);
        check("plain", "plain", Some(&[]));
        check("a{broken", "ab", None);
    }
}
