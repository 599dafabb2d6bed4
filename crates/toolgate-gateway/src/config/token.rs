//! The bearer token of the clients: where it comes from, and itself, which nothing prints.

use super::{
    environment::check_env_name,
    error::ConfigError,
    file::{self, Privacy},
    section::{Field, Section},
};
use std::path::{Path, PathBuf};

/// The fewest characters of a token.
const SHORTEST: usize = 16;
/// The most characters of a token.
const LONGEST: usize = 4096;

/// A bearer token. It has no `Debug`, `Display` or `Serialize`, so that no log can have it.
pub(crate) struct Token(String);

impl Token {
    /// The token itself, to compare it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Takes a token, without the line end that an editor puts after it.
    ///
    /// # Errors
    /// It is too short, too long, or cannot stand in a header. The words do not have it.
    fn new(text: &str) -> Result<Token, String> {
        let text = text.trim_end_matches(['\r', '\n']);
        if !(SHORTEST..=LONGEST).contains(&text.len()) {
            let make = "make one with: openssl rand -hex 32";
            return Err(format!(
                "the token has {} characters, not {SHORTEST} to {LONGEST}; {make}",
                text.chars().count()
            ));
        }
        match text.bytes().all(|b| b.is_ascii_graphic()) {
            true => Ok(Token(text.to_owned())),
            false => Err("the token has blanks or characters that cannot stand in a header; use letters and digits".to_owned()),
        }
    }
}

/// Where the token comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TokenSource {
    from: From,
    /// Where the config says so, as `file:line:column`.
    place: String,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum From {
    Env(String),
    File(PathBuf),
}

impl TokenSource {
    /// Reads the token.
    ///
    /// # Errors
    /// The variable is not set, the file cannot be read or others can, or the token is none.
    pub(crate) fn read(&self) -> Result<Token, ConfigError> {
        self.read_with(|name| std::env::var(name).ok())
    }

    fn read_with(&self, env: impl Fn(&str) -> Option<String>) -> Result<Token, ConfigError> {
        let wrong = |text| ConfigError::new(&self.place, text);
        match &self.from {
            From::Env(name) => match env(name) {
                Some(text) => Token::new(&text)
                    .map_err(|text| wrong(format!("environment variable {name}: {text}"))),
                None => Err(wrong(format!(
                    "environment variable {name} is not set; set it to the token of the clients"
                ))),
            },
            From::File(path) => {
                let text = file::read(path, LONGEST as u64 + 2, Privacy::Secret);
                let text =
                    text.map_err(|text| wrong(format!("token_file {} {text}", path.display())))?;
                Token::new(&text)
                    .map_err(|text| wrong(format!("token_file {}: {text}", path.display())))
            }
        }
    }

    /// Reads `token_env` and `token_file`, of which one may be there, and refuses `token`.
    pub(super) fn of(top: &Section<'_>, base: &Path) -> Result<Option<TokenSource>, ConfigError> {
        if let Some(field) = top.get("token") {
            return Err(field.is("would keep the token in clear in this file; write token_env = \"NAME\" or token_file = \"PATH\""));
        }
        match (top.get("token_env"), top.get("token_file")) {
            (Some(_), Some(field)) => {
                Err(field.is("and \"token_env\" are both there; keep one of the two"))
            }
            (Some(field), None) => TokenSource::env(&field).map(Some),
            (None, Some(field)) => {
                let path = file::resolve(&field, base)?;
                Ok(Some(TokenSource {
                    from: From::File(path),
                    place: field.place(),
                }))
            }
            (None, None) => Ok(None),
        }
    }

    /// Reads `client_secret_env` and `client_secret_file`, of which one may be there, and refuses `client_secret`.
    pub(super) fn secret(
        section: &Section<'_>,
        base: &Path,
    ) -> Result<Option<TokenSource>, ConfigError> {
        if let Some(field) = section.get("client_secret") {
            return Err(field.is("would keep the secret in clear in this file; write client_secret_env = \"NAME\" or client_secret_file = \"PATH\""));
        }
        match (
            section.get("client_secret_env"),
            section.get("client_secret_file"),
        ) {
            (Some(_), Some(field)) => {
                Err(field.is("and \"client_secret_env\" are both there; keep one of the two"))
            }
            (Some(field), None) => TokenSource::env(&field).map(Some),
            (None, Some(field)) => Ok(Some(TokenSource {
                from: From::File(file::resolve(&field, base)?),
                place: field.place(),
            })),
            (None, None) => Ok(None),
        }
    }

    fn env(field: &Field<'_>) -> Result<TokenSource, ConfigError> {
        let name = field.text()?;
        // Whoever pastes the token itself here must not see it again in an error.
        let named = check_env_name(name).map_err(|_| {
            field.is("is no name of an environment variable; write its name, not the token")
        });
        named.map(|()| TokenSource {
            from: From::Env(name.to_owned()),
            place: field.place(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles only while the type lacks the trait: otherwise there are two candidates.
    macro_rules! lacks {
        ($($of:path),*) => {$({
            trait Once<A> {
                fn once() {}
            }
            impl<T> Once<()> for T {}
            impl<T: $of> Once<u8> for T {}
            <Token as Once<_>>::once();
        })*};
    }

    #[test]
    fn nothing_prints_a_token() {
        lacks!(std::fmt::Debug, std::fmt::Display, serde::Serialize);
    }

    fn of_env(value: Option<&str>) -> Result<String, String> {
        let source = TokenSource {
            from: From::Env("T".to_owned()),
            place: "f:1:1".to_owned(),
        };
        let token = source.read_with(|_| value.map(str::to_owned));
        token
            .map(|token| token.reveal().to_owned())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn from_the_environment() {
        assert_eq!(
            of_env(Some("0123456789abcdef\n")),
            Ok("0123456789abcdef".to_owned())
        );
        let unset = "f:1:1: environment variable T is not set; set it to the token of the clients";
        assert_eq!(of_env(None), Err(unset.to_owned()));
        for bad in [
            "0123456789abcde",
            "0123456789 abcdef",
            "0123456789abcdefé",
            "",
        ] {
            let error = of_env(Some(bad)).unwrap_err();
            assert!(bad.is_empty() || !error.contains(bad), "{error}");
        }
    }
}
