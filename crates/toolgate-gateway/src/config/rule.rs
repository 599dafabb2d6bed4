//! What the operator says of tools and callers: `[[rule]]`.

use super::{
    auth::Auth,
    error::{ConfigError, hint},
    glob::Glob,
    limits::Limits,
    rate::Rate,
    section::{Field, Section},
    server::Server,
};
use toolgate_policy::{When, WhenLimits};

/// One rule of the operator. The strictest verdict of all rules that speak of a call wins.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Rule {
    /// The line of the config where it begins, from 1.
    pub(crate) line: usize,
    /// Which tools, as `server.tool`.
    pub(crate) tools: Vec<Glob>,
    /// Which callers; empty for all.
    pub(crate) callers: Vec<Glob>,
    /// Which tools not.
    pub(crate) except: Vec<Glob>,
    /// Under which condition; `None` for always.
    pub(crate) when: Option<When>,
    /// What then.
    pub(crate) then: Then,
    /// How often each caller may call each of these tools; the default of the limits where absent.
    pub(crate) rate: Option<Rate>,
    /// How many persons have to say yes; one where absent.
    pub(crate) approvals: Option<u32>,
}

/// What a rule says; the order is the strictness.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Then {
    /// It may pass.
    Allow,
    /// A person has to look.
    Ask,
    /// It may not pass.
    Deny,
}

/// Every key of a rule.
pub(super) const KEYS: &[&str] = &[
    "tools",
    "callers",
    "except",
    "then",
    "rate",
    "approvals",
    "when",
];

const WORDS: &[(&str, Then)] = &[
    ("allow", Then::Allow),
    ("ask", Then::Ask),
    ("deny", Then::Deny),
];

impl Rule {
    /// Reads all of `[[rule]]`, in the order of the file.
    pub(super) fn read_all(
        field: &Field<'_>,
        servers: &[Server],
        limits: &Limits,
        search: bool,
        auth: &Auth,
    ) -> Result<Vec<Rule>, ConfigError> {
        let rules = field.list("[[rule]] for each rule")?;
        rules
            .iter()
            .map(|field| Rule::read(field, servers, limits, search, auth))
            .collect()
    }

    fn read(
        field: &Field<'_>,
        servers: &[Server],
        limits: &Limits,
        search: bool,
        auth: &Auth,
    ) -> Result<Rule, ConfigError> {
        let section = field.section("[[rule]]", "a section that begins with [[rule]]", KEYS)?;
        let tools = tools(&section.need("tools", "[\"server.*\"]")?, servers, search)?;
        let then = section
            .need("then", "\"allow\", \"ask\" or \"deny\"")?
            .word(WORDS)?;
        let except = section
            .get("except")
            .map_or(Ok(Vec::new()), |field| tools_of(&field, servers, search))?;
        let line = section.doc.place(section.at).0;
        Ok(Rule {
            line,
            tools,
            callers: callers(&section, auth)?,
            except,
            when: when(&section, limits)?,
            then,
            rate: rate(&section)?,
            approvals: approvals(&section, then)?,
        })
    }
}

pub(super) fn tools(
    field: &Field<'_>,
    servers: &[Server],
    search: bool,
) -> Result<Vec<Glob>, ConfigError> {
    match tools_of(field, servers, search)? {
        empty if empty.is_empty() => {
            Err(field.is("is empty, so the rule says nothing; write [\"*\"] for every tool"))
        }
        tools => Ok(tools),
    }
}

/// Reads a list of globs over tools of these servers, and of `[search]` where that is there.
pub(super) fn tools_of(
    field: &Field<'_>,
    servers: &[Server],
    search: bool,
) -> Result<Vec<Glob>, ConfigError> {
    let ours = |id: &str| search && id == crate::search::SERVER;
    let glob = |item: Field<'_>| {
        let glob = Glob::parse_tools(item.text()?).map_err(|text| item.wrong(text))?;
        match glob.server() {
            // A slip here would leave a deny without effect, and nobody would see it.
            Some(id) if !ours(id) && !servers.iter().any(|server| server.id == id) => {
                Err(item.wrong(stranger(&glob, id, servers)))
            }
            _ => Ok(glob),
        }
    };
    field
        .list("a list such as [\"server.*\"]")?
        .into_iter()
        .map(glob)
        .collect()
}

fn stranger(glob: &Glob, id: &str, servers: &[Server]) -> String {
    let hint = hint(id, servers.iter().map(|server| server.id.as_str()));
    format!(
        "glob {:?} speaks of a server {id:?} that is not configured{hint}",
        glob.as_str()
    )
}

/// Reads `callers`: globs, each of which fits some caller.
pub(super) fn callers(section: &Section<'_>, auth: &Auth) -> Result<Vec<Glob>, ConfigError> {
    let Some(field) = section.get("callers") else {
        return Ok(Vec::new());
    };
    let list = field.list("a list such as [\"key:ci\"]")?;
    if list.is_empty() {
        return Err(field.is("is empty; leave it out for every caller"));
    }
    list.into_iter()
        .map(|item| {
            let glob = Glob::parse(item.text()?).map_err(|text| item.wrong(text))?;
            auth.can_be(glob.as_str())
                .map_err(|text| item.wrong(text))?;
            Ok(glob)
        })
        .collect()
}

fn when(section: &Section<'_>, limits: &Limits) -> Result<Option<When>, ConfigError> {
    let Some(field) = section.get("when") else {
        return Ok(None);
    };
    let limits = WhenLimits {
        bytes: limits.when_bytes,
        depth: limits.when_depth,
        steps: limits.when_steps,
    };
    When::compile_within(field.text()?, &limits)
        .map(Some)
        .map_err(|wrong| field.is(format!("is wrong: {wrong}")))
}

fn rate(section: &Section<'_>) -> Result<Option<Rate>, ConfigError> {
    let Some(field) = section.get("rate") else {
        return Ok(None);
    };
    Rate::parse(field.text()?)
        .map(Some)
        .map_err(|text| field.wrong(text))
}

fn approvals(section: &Section<'_>, then: Then) -> Result<Option<u32>, ConfigError> {
    let Some(field) = section.get("approvals") else {
        return Ok(None);
    };
    if then != Then::Ask {
        return Err(field.is("means nothing without then = \"ask\"; take one of them out"));
    }
    let persons = field.number(1..=MOST_PERSONS)?;
    Ok(u32::try_from(persons).ok())
}

/// Persons that have to say yes, at most.
const MOST_PERSONS: u64 = 8;
