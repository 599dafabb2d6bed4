//! Instructions for a person who reads that a sign-in is missing.

use crate::banner::{option_words, shell_quote};

/// Instructions for signing in: the console's URL, if there is one, and the options that name the gateway's config
/// and data. A command without these options would sign in elsewhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SignInInstructions {
    console: Option<String>,
    flags: String,
}

impl SignInInstructions {
    /// Creates the instructions of a gateway from the arguments with which a host would start it.
    pub(crate) fn new(console: Option<String>, words: &[String]) -> SignInInstructions {
        SignInInstructions {
            console,
            flags: option_words(words, &["--config", "--data"]),
        }
    }

    /// Creates the instructions of a gateway that reported its options.
    pub(crate) fn from_flags(flags: &str) -> SignInInstructions {
        SignInInstructions {
            console: None,
            flags: flags.to_owned(),
        }
    }

    /// Formats the instructions for a server, for one caller or for all.
    pub(crate) fn text(&self, id: &str, caller: Option<&str>) -> String {
        let (mut run, mut page) = (format!("toolgate login {id}"), format!("#/servers/{id}"));
        if let Some(caller) = caller {
            // An issuer chose part of the name, and a person puts this into a shell.
            run.push_str(&format!(" --caller {}", shell_quote(caller)));
            page.push('/');
            page.extend(form_urlencoded::byte_serialize(caller.as_bytes()));
        }
        run.push_str(&self.flags);
        match &self.console {
            Some(console) => format!("open {console}{page} or run: {run}"),
            None => format!("run: {run}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_for_the_config_and_the_data_of_the_gateway() {
        let words = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            SignInInstructions::new(None, &words)
        };
        let how = words(&["--config", "/c/t.toml", "--stdio", "--data", "/tmp/a b"]);
        assert_eq!(
            how.text("far", Some("corp:a b")),
            "run: toolgate login far --caller 'corp:a b' --config /c/t.toml --data '/tmp/a b'"
        );
        // Words after `--` belong to the server.
        let how = words(&["run", "--stdio", "--", "x", "--data", "y"]);
        assert_eq!(how.text("far", None), "run: toolgate login far");
    }
}
