//! Views: subsets of the servers, each for some callers and at an endpoint of its own.

use super::callers::CallerMatcher;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use toolgate_core::Caller;

/// View of a gateway: the servers that callers at its endpoint see, and the callers that may use it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct AccessView {
    /// Configured ids of the servers in the view; `None` for all servers.
    pub servers: Option<BTreeSet<Arc<str>>>,
    /// Callers that may use the view; by default all.
    pub callers: CallerMatcher,
}

/// Views of a gateway by name. A caller at the endpoint of a view sees only its servers.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_core::Caller;
/// use toolgate_policy::{AccessRules, AccessView, AccessViews, CallerMatcher};
///
/// let mut view = AccessView::default();
/// view.servers = Some([Arc::from("pager")].into());
/// view.callers = CallerMatcher::from_iter(["group:oncall"]);
/// let views = AccessViews::new([("oncall".into(), view)].into());
///
/// let ann = Caller::new("corp:ann").in_view("oncall");
/// assert_eq!(views.refusal(&ann).as_deref(), Some("the view oncall is not for this caller"));
/// let rules = AccessRules::default().views(views);
/// # drop(rules);
/// ```
#[derive(Clone, Debug, Default)]
pub struct AccessViews(Arc<BTreeMap<Arc<str>, AccessView>>);

impl AccessViews {
    /// Creates the views of a gateway by name.
    pub fn new(views: BTreeMap<Arc<str>, AccessView>) -> AccessViews {
        AccessViews(Arc::new(views))
    }

    /// Returns true if there are no views.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the reason why the caller may not use its view; `None` if it may, or uses none.
    pub fn refusal(&self, caller: &Caller) -> Option<String> {
        let name = caller.view()?;
        match self.0.get(name) {
            // A session may be older than the config.
            None => Some(format!("the config has no view {name}")),
            Some(view) if !view.callers.matches(caller) => {
                Some(format!("the view {name} is not for this caller"))
            }
            Some(_) => None,
        }
    }

    /// Returns the reason why the caller's view hides the server; `None` if it does not.
    pub fn hidden_server_reason(&self, caller: &Caller, server: &str) -> Option<String> {
        let name = caller.view()?;
        self.refusal(caller).or_else(|| {
            let servers = self.0.get(name)?.servers.as_ref()?;
            let is_hidden = !servers.contains(server);
            is_hidden.then(|| format!("the view {name} does not contain the server {server}"))
        })
    }
}
