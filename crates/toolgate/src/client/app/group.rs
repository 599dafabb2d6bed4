//! Group of clients: the items of many servers in one list, with prefixed names.

use super::{
    CallResult, Client, ListedItem, ToolCallBuilder, ToolCaller, ToolList, call_builder::object,
    rounds::CallOptions, unlisted_resources::ANY_URI_TEMPLATE,
};
use crate::aggregate::{Aggregate, AggregateMember, NameRules, PrefixError};
use futures_util::future::join_all;
use serde::Serialize;
use std::{fmt, sync::Arc};
use toolgate_core::{
    BoxFuture, Call, Caller, Catalog, ChangeFilter, ChangeStream, Error, ErrorKind, Item, ItemKind,
    Json, ListRequest, Op, Outcome, Output, Pipeline, PromptResult, ReadResult, Service,
};
use toolgate_protocol::json::ObjectWriter;

/// Clients of several servers as one: a single list of tools, resources and prompts, and calls that go to the right
/// server. A tool or prompt is named `prefix_name`; a resource keeps its URI.
///
/// Each call passes the policy of its own client: rules, confirmations, validation, limits and the audit log.
///
/// ```
/// # use serde_json::json;
/// # use toolgate::{Client, Server, tool};
/// use toolgate::client::ClientGroup;
///
/// # /// Doubles a number.
/// # #[tool(read_only)]
/// # fn double(number: i64) -> String { (number * 2).to_string() }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let numbers = Client::in_process(Server::new("numbers", "1").tool(double)).await?;
/// # let others = Client::in_process(Server::new("others", "1").tool(double)).await?;
/// let group = ClientGroup::new([("math", numbers), ("other", others)])?;
/// let names: Vec<String> = group.tools().await?.iter().map(|tool| tool.name().to_owned()).collect();
/// assert_eq!(names, ["math_double", "other_double"]);
/// assert_eq!(group.call("math_double", json!({"number": 21})).await?.text(), "42");
/// # Ok(())
/// # }
/// ```
///
/// Cheap to clone. A server that is down does not affect the others; see [`ToolList::missing`].
#[derive(Clone)]
pub struct ClientGroup(Arc<GroupState>);

struct GroupState {
    clients: Vec<(String, Client)>,
    aggregate: Arc<Aggregate>,
    /// The aggregate, after the name of each call is looked up.
    service: Pipeline,
    caller: Caller,
}

impl ClientGroup {
    /// Joins these clients under their prefixes: letters, digits and `-`, at most 32 characters.
    ///
    /// # Errors
    /// A prefix is invalid, or two are equal.
    pub fn new<S: Into<String>>(
        clients: impl IntoIterator<Item = (S, Client)>,
    ) -> Result<ClientGroup, PrefixError> {
        let named = clients
            .into_iter()
            .map(|(prefix, client)| (prefix.into(), client));
        let clients: Vec<(String, Client)> = named.collect();
        let members = clients.iter().map(|(prefix, client)| AggregateMember {
            id: prefix.as_str().into(),
            prefix: prefix.clone(),
            service: Arc::new(GroupMember(client.clone())),
        });
        // Such names pass unchanged to every model API.
        let aggregate = Aggregate::new(members.collect())?.names(NameRules::Portable);
        let aggregate = Arc::new(aggregate);
        Ok(ClientGroup(Arc::new(GroupState {
            clients,
            service: Pipeline::new().resolve().service(aggregate.clone()),
            aggregate,
            caller: Caller::new("application"),
        })))
    }

    /// Returns the client of a prefix.
    pub fn client(&self, prefix: &str) -> Option<&Client> {
        let mut clients = self.0.clients.iter();
        clients
            .find(|(own, _)| own == prefix)
            .map(|(_, client)| client)
    }

    /// Lists the tools of all servers, with prefixed names.
    ///
    /// # Errors
    /// No server can be listed.
    pub async fn tools(&self) -> Result<ToolList, Error> {
        let (items, missing) = self.list(ItemKind::Tool).await?;
        Ok(ToolList::from(items).with_missing(missing))
    }

    /// Lists the resources of all servers that can be listed.
    ///
    /// # Errors
    /// No server can be listed.
    pub async fn resources(&self) -> Result<Vec<ListedItem>, Error> {
        Ok(self.list(ItemKind::Resource).await?.0)
    }

    /// Lists the prompts of all servers that can be listed, with prefixed names.
    ///
    /// # Errors
    /// No server can be listed.
    pub async fn prompts(&self) -> Result<Vec<ListedItem>, Error> {
        Ok(self.list(ItemKind::Prompt).await?.0)
    }

    async fn list(&self, kind: ItemKind) -> Result<(Vec<ListedItem>, Vec<String>), Error> {
        let ask = ListRequest::all(self.0.caller.clone(), kind);
        let catalog = self.0.service.list(ask).await?;
        let missing = catalog.missing_servers().to_vec();
        if !missing.is_empty() && missing.len() == self.0.clients.len() {
            let text = format!(
                "no server of the group can be listed: {}",
                missing.join(", ")
            );
            return Err(Error::new(ErrorKind::Upstream, text));
        }
        let good = catalog
            .items()
            .iter()
            .filter(|item| item.withheld.is_none());
        Ok((good.cloned().map(ListedItem).collect(), missing))
    }

    /// Calls a tool by its prefixed name; see [`Client::call`].
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn call(&self, tool: &str, arguments: impl Serialize) -> Result<CallResult, Error> {
        self.call_with(tool, arguments).await
    }

    /// Returns a builder of a tool call with options; see [`Client::call_with`].
    pub fn call_with(&self, tool: &str, arguments: impl Serialize) -> ToolCallBuilder<'_> {
        ToolCallBuilder::of_group(self, tool, arguments)
    }

    /// Reads a resource of the server that lists it, or that linked to it in a result.
    ///
    /// # Errors
    /// As [`Client::read`].
    pub async fn read(&self, uri: &str) -> Result<ReadResult, Error> {
        let mut o = ObjectWriter::new();
        o.str("uri", uri);
        let run = self.run(Op::Resource, uri, o.finish(), CallOptions::default());
        match run.await? {
            Output::Resource(result) => Ok(result),
            _ => Ok(ReadResult::default()),
        }
    }

    /// Fetches a prompt by its prefixed name; see [`Client::prompt`].
    ///
    /// # Errors
    /// As [`Client::prompt`].
    pub async fn prompt(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<PromptResult, Error> {
        let run = self.run(Op::Prompt, name, object(arguments)?, CallOptions::default());
        match run.await? {
            Output::Prompt(result) => Ok(result),
            _ => Ok(PromptResult::default()),
        }
    }

    /// Subscribes to changes of the lists of all servers and of the resources with these URIs.
    ///
    /// # Errors
    /// No server can be reached.
    pub async fn changes<S: Into<String>>(
        &self,
        resources: impl IntoIterator<Item = S>,
    ) -> Result<ChangeStream, Error> {
        let mut want = ChangeFilter::all_lists(self.0.caller.clone());
        want.uris = resources.into_iter().map(Into::into).collect();
        self.0.service.changes(want).await
    }

    /// Closes all clients of the group; see [`Client::close`].
    pub async fn close(&self) {
        join_all(self.0.clients.iter().map(|(_, client)| client.close())).await;
    }

    /// Runs an operation at the server that offers the item.
    pub(super) async fn run(
        &self,
        op: Op,
        name: &str,
        arguments: Json,
        options: CallOptions,
    ) -> Result<Output, Error> {
        let call = self.new_call(op, name, arguments, options);
        match self.0.service.call(call).await? {
            Outcome::Done(output) => Ok(output),
            Outcome::InputRequired(_) => Err(Error::new(
                ErrorKind::Bug,
                "a client of the group left an input request open",
            )),
        }
    }

    /// Returns the client that offers a tool, and the tool's own name there.
    pub(super) async fn route(&self, tool: &str) -> Result<(Client, String), Error> {
        let ask = ListRequest::one(self.0.caller.clone(), ItemKind::Tool, tool);
        self.0.service.list(ask).await?;
        let none = ObjectWriter::new().finish();
        let call = self.new_call(Op::Tool, tool, none, CallOptions::default());
        match self.0.aggregate.member_of(&call).await? {
            Some((at, name)) if at < self.0.clients.len() => {
                Ok((self.0.clients[at].1.clone(), name))
            }
            _ => Err(call.unknown_item_error()),
        }
    }

    fn new_call(&self, op: Op, name: &str, arguments: Json, options: CallOptions) -> Call {
        let id = crate::ids::call_id();
        let mut call = Call::new(id, self.0.caller.clone(), op, name, arguments);
        options.apply(&mut call);
        call
    }
}

impl ToolCaller for ClientGroup {
    fn call_tool<'a>(
        &'a self,
        tool: &'a str,
        arguments: Json,
    ) -> BoxFuture<'a, Result<CallResult, Error>> {
        Box::pin(self.call(tool, arguments))
    }
}

impl fmt::Debug for ClientGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefixes = self.0.clients.iter().map(|(prefix, _)| prefix);
        f.debug_list().entries(prefixes).finish()
    }
}

/// Client as a member of a group: it answers the input requests of its calls itself.
struct GroupMember(Client);

impl Service for GroupMember {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(async move {
            let catalog = self.0.inner().service.list(ask).await?;
            // A URI that no server lists belongs to the server that linked to it, not to the first one.
            let listed = |item: &&Arc<Item>| item.def.name() != ANY_URI_TEMPLATE;
            match catalog.items().iter().all(|item| listed(&item)) {
                true => Ok(catalog),
                false => {
                    let items = catalog.items().iter().filter(listed).cloned();
                    Ok(catalog.with_items(items.collect()))
                }
            }
        })
    }

    fn call(&self, mut call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            self.0.adopt(&mut call);
            self.0.run_observed(call).await.map(Outcome::Done)
        })
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        self.0.inner().service.changes(want)
    }
}
