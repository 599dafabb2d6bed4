//! Rules that allow, deny or ask about calls: [`from_fn`] makes one of a function.
//!
//! Add a rule to a server with [`Server::rule`](crate::Server::rule), or to a client with
//! [`ClientBuilder::rule`](crate::client::ClientBuilder::rule). Rules of yours run after access control, and before the
//! rate limit and the validation of arguments. Implement [`Rule`] to hide items, or to wait before you decide.

pub use toolgate_core::{
    MaybeReady, Rule, RuleDecision,
    rule::{FnRule, from_fn},
};
