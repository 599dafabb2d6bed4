//! The config: one TOML file, or the `mcpServers` JSON of a host, or nothing, which is the demo server.
//!
//! Every wrong config is one error with file, line and column. What is not understood is refused, never ignored.

mod address;
mod asking;
mod audit;
mod auth;
mod caller;
mod cleaning;
mod clear;
mod client;
mod data;
mod environment;
mod error;
mod exchange;
mod file;
mod given;
mod glob;
mod hosts;
mod issuer_sign_in;
mod json;
mod limits;
mod names;
mod net;
mod overrides;
mod own_entries;
mod pins;
mod rate;
mod recorded;
mod revision;
mod rule;
mod search;
mod secret_rules;
mod section;
mod server;
#[cfg(test)]
mod tests;
mod token;
mod top;

pub(crate) use address::Address;
#[cfg(test)]
pub(crate) use address::GrantsOf;
pub(crate) use audit::Audit;
pub(crate) use auth::{Auth, IssuerSettings};
pub(crate) use client::{Client, KnownClient, Shows, SignsIn};
pub(crate) use error::ConfigError;
pub(crate) use exchange::Exchange;
pub(crate) use given::{Given, LONGEST};
pub(crate) use glob::Glob;
pub(crate) use limits::Limits;
#[cfg(test)]
pub(crate) use limits::limit_keys;
pub(crate) use overrides::ToolOverride;
pub(crate) use pins::PinSettings;
pub(crate) use rate::Rate;
pub(crate) use revision::RevisionChoice;
pub(crate) use rule::{Rule, Then};
pub(crate) use search::Search;
pub(crate) use secret_rules::SecretRuleFiles;
pub(crate) use server::{Output, Server, Unknown};
pub(crate) use token::TokenSource;

use error::Doc;
use file::Privacy;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};
use toolgate::aggregate::{NameRules, Overrides};

/// What the gateway serves, for whom, and within which limits.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Where HTTP is served.
    pub(crate) listen: SocketAddr,
    /// Where the bearer token of the clients comes from; without one, HTTP is on loopback only.
    pub(crate) token: Option<TokenSource>,
    /// How callers over HTTP say who they are, besides by that token.
    pub(crate) auth: Auth,
    /// Host names besides those of loopback, in lower case, with or without a port.
    pub(crate) allowed_hosts: Vec<String>,
    /// Origins besides our own pages, in lower case.
    pub(crate) allowed_origins: Vec<String>,
    /// The data directory that the config names.
    pub(crate) data: Option<PathBuf>,
    /// How the record is kept.
    pub(crate) audit: Audit,
    /// Every limit.
    pub(crate) limits: Limits,
    /// What happens to definitions.
    pub(crate) pins: PinSettings,
    /// Which names of tools and prompts clients can use.
    pub(crate) tool_names: NameRules,
    /// The servers, at least one, in the order of the file.
    pub(crate) servers: Vec<Server>,
    /// The rules, in the order of the file.
    pub(crate) rules: Vec<Rule>,
    /// Whether tools are found instead of listed.
    pub(crate) search: Option<Search>,
    /// Rules of the operator that find secrets, beside those of Toolgate.
    pub(crate) secret_rules: SecretRuleFiles,
    /// Where all this comes from.
    pub(crate) source: Source,
    /// Whether secrets stand in the file, as in the JSON of a host.
    pub(crate) in_clear: bool,
    /// SHA-256 of the file in lower-case hex.
    pub(crate) hash: Option<String>,
    /// What a person should know and is no error, such as a server that is left out.
    pub(crate) notes: Vec<String>,
}

/// Where a config comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Source {
    /// A file.
    File(PathBuf),
    /// The demo server of the program itself.
    BuiltIn,
    /// The command line of `toolgate run`.
    CommandLine,
}

impl Config {
    /// The config of that file, else of the default file where there is one, else the demo server.
    ///
    /// A file in the current directory is never taken by itself: a project folder may be hostile.
    ///
    /// # Errors
    /// The file cannot be read, could be changed by others, or is wrong.
    pub(crate) fn load(given: Option<&Path>) -> Result<Config, ConfigError> {
        match given
            .map(Path::to_owned)
            .or_else(crate::paths::default_config)
        {
            Some(path) => Config::load_file(&path),
            None => Config::demo(),
        }
    }

    /// The data directory that this file names, else the default file where there is one, whatever else is wrong with it.
    ///
    /// # Errors
    /// The file cannot be read, could be changed by others, or it cannot be told what its `data` is.
    pub(crate) fn data_in(given: Option<&Path>) -> Result<Option<PathBuf>, ConfigError> {
        let file = given
            .map(Path::to_owned)
            .or_else(crate::paths::default_config);
        file.map_or(Ok(None), |file| data::of(&file))
    }

    /// The config of a file.
    ///
    /// # Errors
    /// It cannot be read, could be changed by others, or is wrong.
    pub(crate) fn load_file(path: &Path) -> Result<Config, ConfigError> {
        let text = file::read(path, file::LONGEST, Privacy::Config);
        let text = text.map_err(|text| ConfigError::new(path.display(), text))?;
        let mut config = Config::parse(path, &text)?;
        if config.in_clear {
            file::read(path, file::LONGEST, Privacy::Secret)
                .map_err(|text| ConfigError::new(path.display(), text))?;
        }
        config.leave_out_own_entries()?;
        config.hash = Some(hex(ring::digest::digest(
            &ring::digest::SHA256,
            text.as_bytes(),
        )
        .as_ref()));
        Ok(config)
    }

    /// The config of a text that was in that file. Text that begins with a brace is JSON.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
        let name = path.display().to_string();
        let doc = Doc {
            name: &name,
            text: text.strip_prefix('\u{feff}').unwrap_or(text),
        };
        let (base, source) = (file::base(path), Source::File(path.to_owned()));
        match doc.text.trim_start().starts_with('{') {
            true => hosts::read(doc, &base, source),
            false => top::read(doc, &base, source),
        }
    }

    /// The built-in config: the demo server of this program, whose annotations are believed, and no rules.
    ///
    /// # Errors
    /// The path of this program is unknown or no text.
    pub(crate) fn demo() -> Result<Config, ConfigError> {
        let wrong = |text: &str| {
            ConfigError::new(
                "demo server",
                format!("the path of this program {text}; give --config"),
            )
        };
        let program =
            std::env::current_exe().map_err(|error| wrong(&format!("is unknown: {error}")))?;
        let program = program
            .into_os_string()
            .into_string()
            .map_err(|_| wrong("is not UTF-8"))?;
        let mut server = Server::new("demo", vec![program, "demo-server".to_owned()]);
        server.trust_annotations = true;
        Ok(Config::of(Source::BuiltIn, vec![server], Limits::default()))
    }

    /// The config of `toolgate run`: one server of that command, whose tools keep their names.
    ///
    /// # Errors
    /// The command is empty.
    pub(crate) fn single(command: Vec<String>) -> Result<Config, ConfigError> {
        let program = command.first().filter(|program| !program.is_empty());
        let program = program.ok_or_else(|| {
            ConfigError::new("toolgate run", "the command is empty; write it after --")
        })?;
        let name = Path::new(program)
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or(program);
        let id: String = names::normalised(name).chars().take(32).collect();
        let id = if id.is_empty() {
            "server".to_owned()
        } else {
            id
        };
        let mut server = Server::new(id, command);
        server.prefix = String::new();
        Ok(Config::of(
            Source::CommandLine,
            vec![server],
            Limits::default(),
        ))
    }

    /// Whether this is the built-in config.
    pub(crate) fn is_demo(&self) -> bool {
        self.source == Source::BuiltIn
    }

    /// Whether the token of a caller is exchanged for one of a server somewhere.
    pub(crate) fn exchanges(&self) -> bool {
        let mut addresses = self.servers.iter().filter_map(|s| s.address.as_ref());
        addresses.any(|address| address.exchange.is_some())
    }

    /// Whether nobody comes in over HTTP without saying who he is.
    pub(crate) fn is_closed(&self) -> bool {
        self.token.is_some() || self.auth.required || !self.auth.issuers.is_empty()
    }

    /// Refuses to listen where other machines reach it without a token; for an address of the command line.
    ///
    /// # Errors
    /// That is so.
    pub(crate) fn check_listen(&self) -> Result<(), ConfigError> {
        net::check_listen(self.listen, self.is_closed())
            .map_err(|text| ConfigError::new("listen", text))
    }

    /// Whether the tokens and secrets of the gateway itself are there and long enough; those of the keyring are not asked for.
    ///
    /// # Errors
    /// One is not.
    pub(crate) fn check_tokens(&self) -> Result<(), ConfigError> {
        let asked = self.auth.issuers.iter().flat_map(|i| &i.introspect);
        let all = self.token.iter().chain(asked.map(|asked| &asked.secret));
        let here = |source: &&TokenSource| !matches!(source.given, Given::Keyring(_));
        all.filter(here)
            .try_for_each(|source| source.checked(source.given.read()).map(drop))
    }

    /// What callers are shown of the tools of each server instead of what it says, in the order of the servers.
    ///
    /// # Errors
    /// A variable of the environment is not set.
    pub(crate) fn overrides(&self) -> Result<Vec<Overrides>, ConfigError> {
        let one = |over: &ToolOverride| Ok((over.tool.clone(), over.resolved()?));
        let of = |server: &Server| server.tools.iter().map(one).collect();
        self.servers.iter().map(of).collect()
    }

    /// These servers, and the defaults.
    fn of(source: Source, servers: Vec<Server>, limits: Limits) -> Config {
        Config {
            listen: net::LISTEN,
            token: None,
            auth: Auth::default(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            data: None,
            audit: Audit::default(),
            limits,
            pins: PinSettings::default(),
            tool_names: NameRules::default(),
            servers,
            rules: Vec::new(),
            search: None,
            secret_rules: SecretRuleFiles::default(),
            in_clear: false,
            source,
            hash: None,
            notes: Vec::new(),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
