//! Facts about a call that CEL conditions read.

use super::{tree::CallFact, value::CelValue};
use serde_json::{Map, Value};
use std::{
    rc::Rc,
    time::{SystemTime, UNIX_EPOCH},
};
use toolgate_core::{CallArguments, Caller, Item, ItemKind};

/// Inputs with which a CEL condition of an access rule or grant is evaluated: caller, item, arguments, time and pin
/// state. Cheap to build: only the facts that a condition reads are computed.
#[derive(Clone, Debug)]
pub struct ConditionFacts<'a> {
    /// Caller of the judged call.
    pub caller: &'a Caller,
    /// Tool, resource or prompt that is called. Its annotations count only if the operator trusts its server.
    pub item: &'a Item,
    /// Arguments of the call; `None` if there is no call, or if the call has no arguments of its own.
    pub arguments: Option<&'a CallArguments>,
    /// Time of the call, for conditions that read the clock.
    pub time: SystemTime,
    /// Pin state of the item's definition: `new`, `accepted` or `changed`; `None` if definitions are not pinned.
    pub pinned: Option<&'a str>,
    /// Another form of the arguments, evaluated in their place.
    pub(crate) substitute: Option<&'a Value>,
}

impl<'a> ConditionFacts<'a> {
    /// Returns the inputs of a condition before a call: without arguments, at the current time, with the pin state of
    /// the item.
    pub fn new(caller: &'a Caller, item: &'a Item) -> ConditionFacts<'a> {
        ConditionFacts {
            caller,
            item,
            arguments: None,
            time: SystemTime::now(),
            pinned: item.pin.as_ref().map(|pin| pin.state.as_str()),
            substitute: None,
        }
    }

    /// Returns these inputs of a CEL condition, together with the arguments of the call.
    pub fn with(self, arguments: &'a CallArguments) -> ConditionFacts<'a> {
        ConditionFacts {
            arguments: Some(arguments),
            ..self
        }
    }

    pub(super) fn args(&'a self) -> Result<&'a Map<String, Value>, String> {
        let Some(arguments) = self.arguments else {
            return Err("the arguments of the call are not known yet".to_owned());
        };
        if arguments.raw().is_lossy() {
            return Err("args contains a number that cannot be represented exactly".to_owned());
        }
        let value = self.substitute.unwrap_or_else(|| arguments.value());
        value
            .as_object()
            .ok_or_else(|| "args is not an object".to_owned())
    }

    pub(super) fn value(&'a self, fact: CallFact) -> Result<CelValue<'a>, String> {
        let hints = self.item.annotations();
        Ok(match fact {
            CallFact::CallerName => CelValue::Text(self.caller.name()),
            CallFact::CallerGroups => texts(&self.caller.attributes().groups),
            CallFact::CallerRoles => texts(&self.caller.attributes().roles),
            CallFact::CallerClaims => CelValue::Object(&self.caller.attributes().claims),
            CallFact::Server => CelValue::Text(&self.item.origin.server),
            CallFact::ToolName => CelValue::Text(&self.item.local_name),
            CallFact::ToolKind => CelValue::Text(match self.item.kind() {
                ItemKind::Tool => "tool",
                ItemKind::Resource => "resource",
                ItemKind::Template => "template",
                ItemKind::Prompt => "prompt",
                ItemKind::Skill => "skill",
            }),
            CallFact::ReadOnly => CelValue::Bool(hints.read_only),
            CallFact::Destructive => CelValue::Bool(hints.destructive),
            CallFact::Idempotent => CelValue::Bool(hints.idempotent),
            CallFact::OpenWorld => CelValue::Bool(hints.open_world),
            CallFact::Pinned => CelValue::Text(
                self.pinned
                    .ok_or("tool.pinned is unknown, because this definition has no pin state")?,
            ),
            CallFact::Hour
            | CallFact::Minute
            | CallFact::Weekday
            | CallFact::Date
            | CallFact::Unix => self.moment(fact)?,
        })
    }

    fn moment(&self, fact: CallFact) -> Result<CelValue<'a>, String> {
        let since = self.time.duration_since(UNIX_EPOCH);
        let unix = since
            .map_err(|_| "the system clock is set to a time before 1970")?
            .as_secs();
        let days = unix / 86_400;
        Ok(match fact {
            CallFact::Hour => CelValue::Int((unix / 3600 % 24).into()),
            CallFact::Minute => CelValue::Int((unix / 60 % 60).into()),
            CallFact::Unix => CelValue::Int(unix.into()),
            CallFact::Weekday => CelValue::Text(WEEKDAYS[(days % 7) as usize]),
            _ => CelValue::Made(Rc::from(date(days))),
        })
    }
}

fn texts(names: &[String]) -> CelValue<'_> {
    let names = names.iter().map(|name| CelValue::Text(name));
    CelValue::List(Rc::new(names.collect()))
}

/// Days of the week, starting with 1 January 1970, a Thursday.
const WEEKDAYS: [&str; 7] = ["thu", "fri", "sat", "sun", "mon", "tue", "wed"];

/// Formats days since 1970 as `2026-11-21`, computed in eras of 400 years that begin on 1 March.
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn formats_dates() {
        for (days, text) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_778, "2026-11-21"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date(days), text);
        }
    }
}
