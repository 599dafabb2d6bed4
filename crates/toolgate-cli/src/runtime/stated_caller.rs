//! Callers that a dry run, a command or an audit record states by name, with their view, groups, roles and claims.

use serde_json::{Value, json};
use toolgate_core::{Caller, CallerAttributes};

/// Name, view, groups, roles and claims of a caller, as stated for a dry run.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatedCaller {
    pub(crate) name: Option<String>,
    /// View at whose endpoint the caller is.
    pub(crate) view: Option<String>,
    pub(crate) attributes: CallerAttributes,
}

impl StatedCaller {
    /// Reads the members `caller`, `view`, `groups`, `roles` and `claims` of a request or an audit record.
    pub(crate) fn read(from: &Value) -> StatedCaller {
        let text = |key: &str| from[key].as_str().map(str::to_owned);
        StatedCaller {
            name: text("caller"),
            view: text("view"),
            attributes: CallerAttributes::from_value(from),
        }
    }

    /// Writes the members that [`StatedCaller::read`] reads into a request.
    pub(crate) fn write(&self, request: &mut Value) {
        request["caller"] = json!(self.name);
        request["view"] = json!(self.view);
        request["groups"] = json!(self.attributes.groups);
        request["roles"] = json!(self.attributes.roles);
        request["claims"] = Value::Object(self.attributes.claims.clone());
    }

    /// Returns the caller, by this name if none is stated. `known` are the attributes that it has if none are stated.
    pub(crate) fn caller(
        self,
        default_name: &str,
        known: impl FnOnce(&str) -> CallerAttributes,
    ) -> Caller {
        let name = self.name.as_deref().unwrap_or(default_name);
        let attributes = match self.attributes.is_empty() {
            true => known(name),
            false => self.attributes,
        };
        let caller = Caller::new(name).with_attributes(attributes);
        match self.view {
            Some(view) => caller.in_view(view),
            None => caller,
        }
    }
}
