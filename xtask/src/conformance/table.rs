//! The bar: what each scenario must give at each revision, and what is not held to it yet.

/// The scenarios of skills, which are in no set of the suite and are run one by one.
pub(crate) const SKILLS: &str = "skills";

/// The revisions that the suite knows, in the order of the columns of the bar, and the scenarios of skills.
pub(crate) const REVISIONS: [&str; 5] = [
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
    SKILLS,
];

/// Which program is under test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Server,
    /// The same server, behind our gateway, which starts it.
    Gateway,
    /// The same server, behind our gateway, which reaches it over HTTP.
    GatewayHttp,
    Client,
}

impl Side {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Side::Server => "server",
            Side::Gateway => "gateway",
            Side::GatewayHttp => "gateway-http",
            Side::Client => "client",
        }
    }

    /// The suite's word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Side::Server | Side::Gateway | Side::GatewayHttp => "server",
            Side::Client => "client",
        }
    }

    fn bar(self) -> &'static str {
        match self {
            Side::Server | Side::Gateway | Side::GatewayHttp => include_str!("server.txt"),
            Side::Client => include_str!("client.txt"),
        }
    }
}

/// What one scenario must give.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Bar {
    pub(crate) scenario: String,
    /// The least number of successful checks.
    pub(crate) least: usize,
}

/// The scenarios of both sides that are held to their bar.
pub(crate) fn held() -> impl Iterator<Item = &'static str> {
    let lines = [Side::Server, Side::Client]
        .into_iter()
        .flat_map(|side| side.bar().lines());
    let names = lines.filter(|line| !line.starts_with('#'));
    names.filter_map(|line| line.split_whitespace().next())
}

/// The bar of one run, in the order of the table.
///
/// # Errors
/// The table or the revision cannot be read.
pub(crate) fn bar(side: Side, revision: &str) -> Result<Vec<Bar>, String> {
    let column = REVISIONS
        .iter()
        .position(|known| *known == revision)
        .ok_or_else(|| format!("no revision {revision} in the table"))?;
    let rows = side.bar().lines().filter(|line| !line.starts_with('#'));
    let bars = rows.map(|line| row(line, column).map_err(|why| format!("{why}: {line}")));
    let mut bars: Vec<Bar> = bars
        .filter_map(Result::transpose)
        .collect::<Result<_, _>>()?;
    for bar in bars.iter_mut().filter(|_| side != Side::Server) {
        if bar.scenario == PLAIN_AT_GATEWAY {
            bar.least -= 1;
        }
    }
    Ok(bars)
}

/// Our gateway answers at once as plain JSON, where the suite sees no stream to look into.
const PLAIN_AT_GATEWAY: &str = "server-sse-multiple-streams";

fn row(line: &str, column: usize) -> Result<Option<Bar>, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [scenario, cells @ ..] = words.as_slice() else {
        return Err("an empty line in the table".to_owned());
    };
    if cells.len() != REVISIONS.len() {
        return Err("a line of the table needs one cell a revision".to_owned());
    }
    let cell = cells[column];
    if cell == "-" {
        return Ok(None);
    }
    let least = cell
        .parse()
        .map_err(|_| format!("{cell} is not a number of checks"))?;
    Ok(Some(Bar {
        scenario: (*scenario).to_owned(),
        least,
    }))
}

#[cfg(test)]
mod tests {
    use super::{Side, bar};

    fn shape(side: Side, revision: &str) -> (usize, usize) {
        let bars = bar(side, revision).unwrap();
        (bars.len(), bars.iter().map(|bar| bar.least).sum())
    }

    #[test]
    fn the_table_has_the_scenarios_of_each_set() {
        assert_eq!(shape(Side::Server, "2025-03-26"), (1, 3));
        assert_eq!(shape(Side::Server, "2025-06-18"), (27, 56));
        assert_eq!(shape(Side::Server, "2025-11-25"), (33, 84));
        assert_eq!(shape(Side::Server, "2026-07-28").0, 50);
        assert_eq!(shape(Side::Client, "2025-03-26").0, 2);
        assert_eq!(shape(Side::Client, "2025-06-18"), (5, 51));
        assert_eq!(shape(Side::Client, "2025-11-25").0, 25);
        assert_eq!(shape(Side::Client, "2026-07-28").0, 39);
    }

    #[test]
    fn all_scenarios_are_held_to_the_bar() {
        for (side, revision, held) in [
            (Side::Server, "2025-11-25", 33),
            (Side::Server, "2026-07-28", 50),
            (Side::Gateway, "2025-11-25", 33),
            (Side::Gateway, "2026-07-28", 50),
            (Side::Client, "2025-11-25", 25),
            (Side::Client, "2026-07-28", 39),
        ] {
            let count = bar(side, revision).unwrap().len();
            assert_eq!(count, held, "{} {revision}", side.name());
        }
    }

    #[test]
    fn an_unknown_revision_is_an_error() {
        assert!(bar(Side::Server, "2024-11-05").is_err());
    }
}
