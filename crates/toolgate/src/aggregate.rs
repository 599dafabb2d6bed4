//! Many services as one. A tool is called `prefix_tool` here, so that equal names do not meet.

mod changes;
mod names;
mod part;

use changes::Joint;
use futures_util::future::join_all;
pub use names::{BadPrefix, wire_name};
use part::Part;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use toolgate_core::{
    BoxFuture, Call, Catalog, Changes, Error, Interest, Kind, List, Op, Outcome, Service,
};

/// How long a list waits for a member at most.
const WAIT: Duration = Duration::from_secs(10);

/// One of the services that are joined.
pub struct Member {
    /// The configured id; where its items come from.
    pub id: Arc<str>,
    /// What stands before the names of its tools; empty for none, which only a single member may have.
    pub prefix: String,
    /// The service.
    pub service: Arc<dyn Service>,
}

/// Many services as one. Members that cannot be listed are named in [`Catalog::missing`]; they sink nobody else.
pub struct Aggregate {
    members: Vec<Member>,
    wait: Duration,
    state: Mutex<State>,
    joint: Joint,
}

struct State {
    /// The last list of each member, under the names used here; kept while the member is down.
    parts: Vec<Option<Arc<Part>>>,
    /// The last snapshot, and what it was made of.
    joined: Option<(Vec<Option<Arc<Part>>>, Catalog)>,
}

impl Aggregate {
    /// Joins services, in this order.
    ///
    /// # Errors
    /// [`BadPrefix`] where two names could meet: a prefix that stands twice or has other characters than
    /// `[A-Za-z0-9-]`, or an empty one beside others.
    pub fn new(members: Vec<Member>) -> Result<Aggregate, BadPrefix> {
        names::check(members.iter().map(|member| member.prefix.as_str()))?;
        let parts = members.iter().map(|_| None).collect();
        let state = Mutex::new(State {
            parts,
            joined: None,
        });
        Ok(Aggregate {
            members,
            wait: WAIT,
            state,
            joint: Joint::default(),
        })
    }

    /// Another bound on how long a list waits for a member; 10 s.
    pub fn wait(mut self, wait: Duration) -> Aggregate {
        self.wait = wait;
        self
    }

    /// All members are asked at once.
    async fn list_all(&self, ask: List) -> Catalog {
        let lists = self
            .members
            .iter()
            .enumerate()
            .map(|(at, _)| self.refresh(at, ask.clone()));
        let parts = join_all(lists).await.into_iter().map(Result::ok).collect();
        self.join(parts)
    }

    /// Only the owner of the name is asked, so that a call to a good server never waits for a bad one. While the
    /// owner is down its last list answers for it: what cannot be seen stays unknown, and a call says why it fails.
    async fn list_for(&self, name: &str, ask: List) -> Catalog {
        if let Some(at) = self.owner(name) {
            let trail = ask.trail.clone();
            let refreshed = self.refresh(at, ask).await;
            // Nobody knows yet who may see it: it is unknown, and the cause is for the operator.
            if let (Err(error), None) = (refreshed, &self.state().parts[at]) {
                trail.add("aggregate", "unknown", error.public());
            }
        }
        self.known()
    }

    /// What is known without asking anybody; servers that never answered are named as missing.
    pub fn known(&self) -> Catalog {
        let parts = self.state().parts.clone();
        self.join(parts)
    }

    async fn refresh(&self, at: usize, ask: List) -> Result<Arc<Part>, Error> {
        let member = &self.members[at];
        let only = ask.only.as_ref().map(|name| self.inner_name(at, name));
        let asked = member.service.list(List { only, ..ask });
        let late = |_| {
            Error::new(
                Kind::Upstream,
                format!(
                    "the server {} did not list its tools within {:?}",
                    member.id, self.wait
                ),
            )
        };
        let catalog = tokio::time::timeout(self.wait, asked)
            .await
            .map_err(late)??;
        let mut state = self.state();
        let part = Part::of(member, catalog, state.parts[at].as_ref());
        state.parts[at] = Some(part.clone());
        Ok(part)
    }

    /// The same parts make the same snapshot.
    fn join(&self, parts: Vec<Option<Arc<Part>>>) -> Catalog {
        let mut state = self.state();
        if let Some((of, joined)) = &state.joined
            && part::same(of, &parts)
        {
            return joined.clone();
        }
        let joined = part::join(&self.members, &parts);
        state.joined = Some((parts, joined.clone()));
        joined
    }

    /// The member that a name belongs to. Prefixes have no `_`, so there is one at most.
    fn owner(&self, name: &str) -> Option<usize> {
        let is_owner = |member: &Member| match member.prefix.as_str() {
            "" => true,
            prefix => name
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with('_')),
        };
        self.members.iter().position(is_owner)
    }

    /// The member's own word for a name, as far as it is known.
    fn inner_name(&self, at: usize, name: &str) -> String {
        let known = self.state().parts[at]
            .as_ref()
            .and_then(|part| part.route(name));
        known.unwrap_or_else(|| name.to_owned())
    }

    async fn forward(&self, mut call: Call) -> Result<Outcome, Error> {
        let Some(at) = self.owner(call.name()) else {
            return Err(Error::unknown_tool(call.name()));
        };
        if self.state().parts[at].is_none() {
            self.refresh(at, List::all(call.caller.clone())).await?;
        }
        let route = self.state().parts[at]
            .as_ref()
            .and_then(|part| part.route(call.name()));
        let Some(inner) = route else {
            return Err(Error::unknown_tool(call.name()));
        };
        let Op::Tool(tool) = &mut call.op;
        tool.name = inner;
        self.members[at].service.call(call).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service for Aggregate {
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(async move {
            match ask.only.clone() {
                Some(name) => Ok(self.list_for(&name, ask).await),
                None => Ok(self.list_all(ask).await),
            }
        })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(self.forward(call))
    }

    fn changes(&self, want: Interest) -> BoxFuture<'_, Result<Changes, Error>> {
        Box::pin(async move { Ok(self.joint.listen(&self.members, want).await) })
    }
}
