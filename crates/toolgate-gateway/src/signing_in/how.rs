//! What a person does who reads that a sign-in is missing.

use crate::startup::{flags, shell};

/// Where the console of a gateway is, if there is one, and with which config and data it runs: a command without them would
/// sign in elsewhere.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct How {
    console: Option<String>,
    flags: String,
}

impl How {
    /// Of a gateway that a host would start with these words.
    pub(crate) fn new(console: Option<String>, words: &[String]) -> How {
        How {
            console,
            flags: flags(words, &["--config", "--data"]),
        }
    }

    /// Of a gateway that said its options itself.
    pub(crate) fn with(flags: &str) -> How {
        How {
            console: None,
            flags: flags.to_owned(),
        }
    }

    /// To sign in at a server, for that caller or for all.
    pub(crate) fn words(&self, id: &str, caller: Option<&str>) -> String {
        let (mut run, mut page) = (format!("toolgate login {id}"), format!("#/servers/{id}"));
        if let Some(caller) = caller {
            // An issuer chose part of the name, and a person puts this into a shell.
            run.push_str(&format!(" --caller {}", shell(caller)));
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
            How::new(None, &words)
        };
        let how = words(&["--config", "/c/t.toml", "--stdio", "--data", "/tmp/a b"]);
        assert_eq!(
            how.words("far", Some("corp:a b")),
            "run: toolgate login far --caller 'corp:a b' --config /c/t.toml --data '/tmp/a b'"
        );
        // What stands behind is of the server.
        let how = words(&["run", "--stdio", "--", "x", "--data", "y"]);
        assert_eq!(how.words("far", None), "run: toolgate login far");
    }
}
