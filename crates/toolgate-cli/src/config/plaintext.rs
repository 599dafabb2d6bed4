//! Detection of plaintext secrets in a config.

use toolgate_policy::SecretRedactor;

/// Last words of a secret's name.
const SECRET_LAST_WORDS: &[&str] = &[
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "key",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "pat",
    "pwd",
    "secret",
    "token",
];
/// Suffixes of a secret's name without a word boundary, as in `APIKEY`.
const SECRET_SUFFIXES: &[&str] = &[
    "accesskey",
    "apikey",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "secretkey",
    "token",
];
/// Words before `key` that make it a public key.
const PUBLIC_KEY_WORDS: &[&str] = &["public", "publishable"];

/// Returns why a value looks like a secret, by its name or its form. The reason does not contain the value.
pub(crate) fn secret_reason(name: &str, value: &str) -> Option<String> {
    if value.is_empty() {
        return None;
    }
    if names_a_secret(name) {
        return Some("has the name of a secret".to_owned());
    }
    SecretRedactor::matching_rule(name, value).map(|rule| format!("looks like a secret ({rule})"))
}

/// Checks a URL as a whole and each parameter of its query, like [`why`].
pub(crate) fn secret_in_url(url: &str) -> Option<String> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    let part = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let why = secret_reason(name, value)?;
        Some(format!("has a query parameter {name:?} that {why}"))
    };
    query
        .split('&')
        .find_map(part)
        .or_else(|| secret_reason("", url))
}

/// Checks each word of a command line, like [`why`], and returns its index. A word after an option is the option's
/// value.
pub(crate) fn secrets_in_command(words: &[String]) -> impl Iterator<Item = (usize, String)> + '_ {
    let option = |word: &str| word.trim_start_matches('-').to_owned();
    let plain = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    words.iter().enumerate().filter_map(move |(at, word)| {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let value_of = before.filter(|before| before.starts_with('-') && !before.contains('='));
        let why = match (word.split_once('='), value_of) {
            (Some((name, value)), _) if plain(name) => secret_reason(&option(name), value),
            (_, Some(before)) if !word.starts_with('-') => secret_reason(&option(before), word),
            _ => None,
        };
        why.or_else(|| self::secret_reason("", word))
            .map(|why| (at, why))
    })
}

fn names_a_secret(name: &str) -> bool {
    let words = name_words(name);
    let Some((last, before)) = words.split_last() else {
        return false;
    };
    match last.as_str() {
        "key" => !before
            .last()
            .is_some_and(|b| PUBLIC_KEY_WORDS.contains(&b.as_str())),
        last => {
            SECRET_LAST_WORDS.contains(&last)
                || SECRET_SUFFIXES.iter().any(|end| last.ends_with(end))
        }
    }
}

/// Splits a name into words: `X-Api-Key`, `API_KEY` and `apiKey` have the same last one.
fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() || (c.is_ascii_uppercase() && small) {
            words.push(String::new());
        }
        small = c.is_ascii_lowercase() || c.is_ascii_digit();
        if c.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(c.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name() {
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "Cookie",
            "X-Api-Key",
            "X-Key",
            "apiKey",
            "APIKEY",
            "OPENAI_API_KEY",
            "GITHUB_PERSONAL_ACCESS_TOKEN",
            "X-Auth-Token",
            "authToken",
            "CLIENT_SECRET",
            "DB_PASSWORD",
            "PGPASSWORD",
            "GITHUB_PAT",
            "key",
        ] {
            assert!(secret_reason(name, "x1").is_some(), "{name}");
            assert!(secret_reason(name, "").is_none(), "{name}");
        }
        for name in [
            "GITHUB_TOOLSETS",
            "MAX_TOKENS",
            "TOKEN_URL",
            "SECRET_NAME",
            "KEYBOARD",
            "MONKEY",
            "STRIPE_PUBLISHABLE_KEY",
            "PATH",
            "COMPAT",
            "X-Tenant",
            "AUTHOR",
            "",
        ] {
            assert!(secret_reason(name, "acme").is_none(), "{name}");
        }
    }

    #[test]
    fn by_its_looks() {
        let token = format!("ghp_{}", "a4Gs".repeat(9));
        assert!(secret_reason("X-Tenant", &token).is_some_and(|why| !why.contains(&token)));
        assert!(
            secret_reason(
                "DATABASE_URL",
                "postgres://app:k3R9vQ2mX7bT1nL5@db.test/app"
            )
            .is_some()
        );
        assert!(secret_in_url("https://a.test/mcp?api_key=k3R9vQ2m").is_some());
        assert!(secret_in_url("https://a.test/mcp?key=abc#x").is_some());
        assert!(secret_in_url("https://a.test/mcp?page=2&key=").is_none());
        for (words, at) in [
            (["x", "--api-key", "k3R9"].as_slice(), Some(2)),
            (&["x", "--api-key=k3R9"], Some(1)),
            (&["docker", "run", "-e", "DB_PASSWORD=hunter2"], Some(3)),
            (
                &["x", "--header", "Authorization: Bearer k3R9vQ2mX7bT1nL5"],
                Some(2),
            ),
            (&["x", "--token", "--verbose"], None),
            (&["npx", "-y", "@a/server-filesystem", "/srv/token"], None),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let found = secrets_in_command(&words).next().map(|(at, _)| at);
            assert_eq!(found, at, "{words:?}");
        }
    }
}
