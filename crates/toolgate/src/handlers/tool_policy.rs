//! Limits, rules and sanitizers of one tool.

use super::{ItemRegistry, Tool};
use std::{sync::Arc, time::Duration};
use toolgate_core::{
    Call, Caller, Item, ItemKind, MaybeReady, Rule, RuleDecision, Sanitizer, sanitizer,
};
use toolgate_policy::{
    RateLimiter, RateQuota, SizeLimits,
    layers::{ConcurrentCalls, TimeoutLayer},
};

impl Tool {
    /// Sets the time limit of a call of this tool. Progress does not extend it. The limits of
    /// [`Server::deadline`](super::Server::deadline) still apply, so a longer one here has no effect.
    ///
    /// ```
    /// use std::time::Duration;
    /// use toolgate::{Cx, HandlerExit, Tool, policy::RateQuota};
    ///
    /// let search = Tool::dynamic("search", serde_json::json!({"type": "object"}), |_, _: Cx| async {
    ///     Ok::<_, HandlerExit>("nothing")
    /// })
    /// .timeout(Duration::from_secs(5))
    /// .concurrency(4)
    /// .rate_limit(RateQuota::per_minute(30))
    /// .max_result_bytes(64 * 1024);
    /// # let _ = search;
    /// ```
    #[must_use]
    pub fn timeout(self, limit: Duration) -> Tool {
        self.layer(TimeoutLayer::new(limit))
    }

    /// Sets the number of calls of this tool that run at once, of all callers together. Further calls wait in order.
    #[must_use]
    pub fn concurrency(self, calls: usize) -> Tool {
        self.layer(ConcurrentCalls::at_most(calls))
    }

    /// Sets the rate limit of this tool for each caller. The limit of
    /// [`Server::rate_limit`](super::Server::rate_limit) still applies.
    #[must_use]
    pub fn rate_limit(self, quota: RateQuota) -> Tool {
        self.rule(RateLimiter::new(Vec::new(), quota))
    }

    /// Sets the maximum size of a result of this tool, in bytes. A longer result is an error that tells its size. The
    /// limit of [`Server::size_limits`](super::Server::size_limits) still applies.
    #[must_use]
    pub fn max_result_bytes(self, bytes: usize) -> Tool {
        let mut limits = SizeLimits::default();
        limits.result = bytes;
        limits.blocks = usize::MAX; // the server's limits apply to all else
        limits.definition = usize::MAX;
        limits.description = usize::MAX;
        limits.text = usize::MAX;
        limits.log = usize::MAX;
        limits.input_requests = usize::MAX;
        self.sanitize(limits)
    }

    /// Adds a rule that decides which callers may see and call this tool. The rules of the server apply as well.
    ///
    /// ```
    /// use toolgate::{Server, core::{RuleDecision, rule}, handlers::IntoTool, tool};
    ///
    /// /// Transfers money.
    /// #[tool]
    /// fn transfer(amount: f64, to: String) -> String {
    ///     format!("transferred {amount} to {to}")
    /// }
    ///
    /// let transfer = transfer.into_tool().rule(rule::from_fn("amount", |call, _item| {
    ///     match call.arguments().value()["amount"].as_f64() {
    ///         Some(amount) if amount > 100.0 => RuleDecision::ask(format!("transfers {amount}")),
    ///         _ => RuleDecision::Allow,
    ///     }
    /// }));
    /// let server = Server::new("bank", "1.0.0").tool(transfer);
    /// # assert!(server.build().is_ok());
    /// ```
    #[must_use]
    pub fn rule(mut self, rule: impl Rule) -> Tool {
        let added: Arc<dyn Rule> = Arc::new(rule);
        self.rules = self.rules.iter().cloned().chain([added]).collect();
        self
    }

    /// Adds a sanitizer of the results, errors, input requests and messages of this tool, but not of its definition. It
    /// sees content before the sanitizers of the server.
    ///
    /// ```
    /// use toolgate::{Server, handlers::IntoTool, sanitizer, tool};
    ///
    /// /// Finds people.
    /// #[tool(read_only)]
    /// fn find(name: String) -> String {
    ///     format!("{name}@example.com")
    /// }
    ///
    /// let find = find.into_tool().sanitize(sanitizer::text_from_fn("mail", |text| {
    ///     text.contains('@').then(|| text.replace('@', " at "))
    /// }));
    /// let server = Server::new("people", "1.0.0").tool(find);
    /// # assert!(server.build().is_ok());
    /// ```
    #[must_use]
    pub fn sanitize(self, sanitizer: impl Sanitizer) -> Tool {
        self.layer(sanitizer::into_layer(sanitizer))
    }
}

/// Rules that belong to single tools of a server, also of tools that are added later.
pub(super) struct ToolRules(pub(super) ItemRegistry);

impl ToolRules {
    /// Returns the rules of an item, if it has any.
    fn of(&self, item: &Item) -> Option<Arc<[Arc<dyn Rule>]>> {
        let own = item.kind() == ItemKind::Tool && item.origin.server == self.0.origin().server;
        if !own || !self.0.has_tool_rules() {
            return None;
        }
        // The definition may be overridden; the rules are those of the handler.
        let original = item.original.as_ref();
        let name = original.map_or(&*item.local_name, |original| original.def.name());
        let offered = self.0.offered();
        let rules = offered.tool(name)?.rules();
        (!rules.is_empty()).then(|| rules.clone())
    }

    /// Returns the first rule of an item that hides it from a caller.
    fn hiding(&self, caller: &Caller, item: &Item) -> Option<Arc<dyn Rule>> {
        let rules = self.of(item)?;
        let hides = |rule: &&Arc<dyn Rule>| !rule.is_visible(caller, item);
        rules.iter().find(hides).cloned()
    }

    fn decide_all<'a>(&self, call: &'a Call, item: &'a Item, is_dry_run: bool) -> MaybeReady<'a> {
        let Some(rules) = self.of(item) else {
            return MaybeReady::Ready(RuleDecision::Allow);
        };
        MaybeReady::Pending(Box::pin(async move {
            let mut reasons = Vec::new();
            for rule in rules.iter() {
                let decision = match is_dry_run {
                    true => rule.explain(call, item),
                    false => rule.decide(call, item),
                };
                let decision = match decision {
                    MaybeReady::Ready(decision) => decision,
                    MaybeReady::Pending(decision) => decision.await,
                };
                match decision {
                    RuleDecision::Allow => {}
                    RuleDecision::Ask(reason) => reasons.push(reason),
                    denied @ RuleDecision::Deny(_) => return denied,
                }
            }
            match reasons.is_empty() {
                true => RuleDecision::Allow,
                false => RuleDecision::Ask(reasons.join("; ")),
            }
        }))
    }
}

impl Rule for ToolRules {
    fn name(&self) -> &'static str {
        "tool"
    }

    fn is_visible(&self, caller: &Caller, item: &Item) -> bool {
        self.hiding(caller, item).is_none()
    }

    fn may_hide_items(&self) -> bool {
        let any = |tool: &Tool| tool.rules().iter().any(|rule| rule.may_hide_items());
        self.0.has_tool_rules() && self.0.offered().tools.iter().any(any)
    }

    fn hidden_reason(&self, caller: &Caller, item: &Item) -> String {
        let rule = self.hiding(caller, item);
        rule.map_or_else(String::new, |rule| rule.hidden_reason(caller, item))
    }

    fn decide<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        self.decide_all(call, item, false)
    }

    fn explain<'a>(&'a self, call: &'a Call, item: &'a Item) -> MaybeReady<'a> {
        self.decide_all(call, item, true)
    }
}
