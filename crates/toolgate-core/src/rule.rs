//! Rules from functions. The trait is [`Rule`].

use crate::{Call, Item, MaybeReady, Rule, RuleDecision};

/// Creates a rule from a function that decides each call. It hides no item.
///
/// The name is one word, for the decision log. The function must not block; a rule that waits for something implements
/// [`Rule`] and returns [`MaybeReady::Pending`].
///
/// ```
/// use toolgate_core::{RuleDecision, rule};
///
/// /// Requires approval of payments above 100.
/// let large_payments = rule::from_fn("payments", |call, _item| {
///     match call.arguments().value()["amount"].as_f64() {
///         Some(amount) if amount > 100.0 => RuleDecision::ask(format!("pays {amount}")),
///         _ => RuleDecision::Allow,
///     }
/// });
/// # let _ = toolgate_core::Pipeline::new().resolve().rule(large_payments);
/// ```
pub fn from_fn<F>(name: &'static str, decide: F) -> FnRule<F>
where
    F: Fn(&Call, &Item) -> RuleDecision + Send + Sync + 'static,
{
    FnRule { name, decide }
}

/// Rule of a function; see [`from_fn`].
#[derive(Clone, Copy, Debug)]
pub struct FnRule<F> {
    name: &'static str,
    decide: F,
}

impl<F> Rule for FnRule<F>
where
    F: Fn(&Call, &Item) -> RuleDecision + Send + Sync + 'static,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn may_hide_items(&self) -> bool {
        false
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        MaybeReady::Ready((self.decide)(call, item))
    }
}
