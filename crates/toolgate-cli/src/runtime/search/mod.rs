//! Tool search: two tools replace a long tool list, `find_tools` and `call_tool`.
//!
//! `call_tool` sends a call through the same pipeline as a direct call, under its own name and with the original bytes.
//! No
//! other path evaluates it.

mod bm25;
mod search_tools;

use crate::{config, runtime::compose::caller_matcher};
use bm25::SearchIndex;
use search_tools::{CALL_TOOL, FIND_TOOLS, SearchTools};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use toolgate_core::{
    BoxFuture, Call, CallArguments, Caller, Catalog, ChangeFilter, ChangeStream, Error, ErrorKind,
    Item, ItemKind, ListRequest, Op, Outcome, Output, Service,
};
use toolgate_policy::{CallerMatcher, GlobPattern, Policy};

/// Maximum number of cached search indexes, and of cached presented lists.
const MAX_CACHED_LISTS: usize = 16;
/// Maximum number of similar names in an error.
const MAX_SUGGESTIONS: usize = 3;

/// Tool search service: all tools behind their policy, and the two search tools.
pub(crate) struct ToolSearch {
    tools: Arc<SearchableTools>,
    own: Arc<dyn Service>,
    /// Number of visible tools from which search replaces the list.
    min_tools: usize,
    direct: Vec<DirectTools>,
    presented_lists: Mutex<VecDeque<PresentedList>>,
}

/// Tools behind their policy, with search settings and cached indexes.
struct SearchableTools {
    service: Arc<dyn Service>,
    /// Default number of results.
    default_results: u64,
    /// Maximum size of a search result in bytes.
    max_result_bytes: usize,
    indexed: Mutex<VecDeque<(Catalog, Arc<SearchIndex>)>>,
}

/// Tools that stay in the lists of some callers.
struct DirectTools {
    tools: Vec<GlobPattern>,
    callers: CallerMatcher,
    except: Vec<GlobPattern>,
}

/// Cached tool list as presented to a caller.
struct PresentedList {
    whole: Catalog,
    own: Catalog,
    direct: Vec<bool>,
    presented: Catalog,
}

impl ToolSearch {
    /// Creates the search service over the pipeline of a policy, with the settings of a config.
    pub(crate) fn new(
        settings: &config::SearchSettings,
        route: &Policy,
        service: Arc<dyn Service>,
    ) -> ToolSearch {
        let tools = Arc::new(SearchableTools {
            service,
            default_results: settings.default_results,
            max_result_bytes: settings.max_result_bytes,
            indexed: Mutex::default(),
        });
        let own = Arc::new(SearchTools::new(tools.clone()));
        let patterns = |globs: &[config::NameGlob]| {
            let patterns = globs.iter().map(|glob| GlobPattern::new(glob.as_str()));
            patterns.collect::<Vec<_>>()
        };
        let direct = settings.direct.iter().map(|direct| DirectTools {
            tools: patterns(&direct.tools),
            callers: caller_matcher(&direct.callers),
            except: patterns(&direct.except),
        });
        ToolSearch {
            own: Arc::new(route.over(own)),
            tools,
            min_tools: settings.min_tools,
            direct: direct.collect(),
            presented_lists: Mutex::default(),
        }
    }

    /// Returns true if search replaces the tool list of this caller.
    async fn is_active(&self, caller: &Caller) -> Result<bool, Error> {
        // With threshold 0, no list is needed.
        if self.min_tools == 0 {
            return Ok(true);
        }
        let list = self.tools.all(caller.clone()).await?;
        Ok(list.items().len() >= self.min_tools)
    }

    async fn listed(&self, ask: ListRequest) -> Result<Catalog, Error> {
        let caller = ask.caller.clone();
        let whole = self.tools.service.list(ask).await?;
        if whole.items().len() < self.min_tools {
            return Ok(whole);
        }
        let own = ListRequest::all(caller.clone(), ItemKind::Tool);
        let own = self.own.list(own).await?;
        let items = whole.items().iter();
        let direct = items.map(|item| self.is_direct(&caller, item)).collect();
        Ok(self.presented_list(whole, own, direct))
    }

    fn is_direct(&self, caller: &Caller, item: &Item) -> bool {
        if is_for_apps(item) {
            return true;
        }
        let fits = |patterns: &[GlobPattern], name: &str| patterns.iter().any(|p| p.matches(name));
        let mut direct = self
            .direct
            .iter()
            .filter(|direct| direct.callers.matches(caller));
        let Some(first) = direct.next() else {
            return false;
        };
        let name = item.full_name();
        let mut all = std::iter::once(first).chain(direct);
        all.any(|direct| fits(&direct.tools, &name) && !fits(&direct.except, &name))
    }

    /// Returns a cached snapshot if the inputs are unchanged.
    fn presented_list(&self, whole: Catalog, own: Catalog, direct: Vec<bool>) -> Catalog {
        let mut kept = lock(&self.presented_lists);
        let same = |shown: &&PresentedList| {
            shown.whole.is_same_snapshot(&whole)
                && shown.own.is_same_snapshot(&own)
                && shown.direct == direct
        };
        if let Some(shown) = kept.iter().find(same) {
            return shown.presented.clone();
        }
        let listed = whole.items().iter().zip(&direct);
        let listed = listed.filter(|(_, direct)| **direct).map(|(item, _)| item);
        let items = own.items().iter().chain(listed).cloned();
        let seen = whole.with_items(items.collect());
        kept.truncate(MAX_CACHED_LISTS - 1);
        kept.push_front(PresentedList {
            whole,
            own,
            direct,
            presented: seen.clone(),
        });
        seen
    }

    /// Returns true if the name is that of a search tool that this caller sees.
    async fn is_search_tool(&self, caller: &Caller, name: &str) -> Result<bool, Error> {
        if !matches!(name, FIND_TOOLS | CALL_TOOL) || !self.is_active(caller).await? {
            return Ok(false);
        }
        let ask = ListRequest::one(caller.clone(), ItemKind::Tool, name);
        Ok(self.own.list(ask).await?.find(name).is_some())
    }

    async fn route_call(&self, mut call: Call) -> Result<Outcome, Error> {
        if call.op != Op::Tool || !self.is_search_tool(&call.caller, call.name()).await? {
            return self.tools.service.call(call).await;
        }
        let Some((name, arguments)) = (call.name() == CALL_TOOL)
            .then(|| search_tools::inner_call(&call))
            .flatten()
        else {
            return self.own.call(call).await;
        };
        let caller = call.caller.clone();
        call.invocation.name.clone_from(&name);
        call.invocation.arguments = CallArguments::new(arguments);
        let done = self.tools.service.call(call).await;
        if let Err(error) = &done
            && *error.kind() == ErrorKind::NotFound
        {
            let list = self.tools.all(caller).await?;
            if list.find(&name).is_none() {
                let told = search_tools::unknown_tool(self, &list, &name);
                return Ok(Outcome::Done(Output::Tool(told)));
            }
        }
        done
    }
}

/// Returns true if a tool is for the pages of MCP Apps and not for models. Hosts must see it, so that their pages can
/// use it, but no model should find it.
fn is_for_apps(item: &Item) -> bool {
    let visible = || item.def.json().get("_meta")?.get("ui")?.get("visibility");
    let words: Option<Vec<Option<String>>> =
        visible().map(|all| all.items().map(|word| word.string()).collect());
    words.is_some_and(|words| {
        !words.is_empty() && !words.iter().any(|word| word.as_deref() == Some("model"))
    })
}

impl SearchableTools {
    async fn all(&self, caller: Caller) -> Result<Catalog, Error> {
        self.service
            .list(ListRequest::all(caller, ItemKind::Tool))
            .await
    }

    /// Returns the search index of a list, built once for each list.
    fn index(&self, list: &Catalog) -> Arc<SearchIndex> {
        let known = |kept: &VecDeque<(Catalog, Arc<SearchIndex>)>| {
            let found = kept.iter().find(|(of, _)| of.is_same_snapshot(list));
            found.map(|(_, index)| index.clone())
        };
        if let Some(index) = known(&lock(&self.indexed)) {
            return index;
        }
        // Build without the lock, so that other searches can run.
        let index = Arc::new(SearchIndex::of(list));
        let mut kept = lock(&self.indexed);
        if let Some(index) = known(&kept) {
            return index;
        }
        kept.truncate(MAX_CACHED_LISTS - 1);
        kept.push_front((list.clone(), index.clone()));
        index
    }

    /// Returns the most similar tool names.
    fn similar_names<'a>(&self, list: &'a Catalog, name: &str) -> Vec<&'a str> {
        const MAX_COMPARED_NAME_BYTES: usize = 128;
        if name.len() > MAX_COMPARED_NAME_BYTES {
            return Vec::new();
        }
        let near = |other: &str| strsim::jaro_winkler(other, name);
        let names = list.items().iter().map(|item| item.def.name());
        let mut names: Vec<(f64, &str)> = names
            .map(|other| (near(other), other))
            .filter(|(near, _)| *near > 0.8)
            .collect();
        names.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        names
            .into_iter()
            .take(MAX_SUGGESTIONS)
            .map(|(_, name)| name)
            .collect()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Service for ToolSearch {
    fn list(&self, ask: ListRequest) -> BoxFuture<'_, Result<Catalog, Error>> {
        Box::pin(async move {
            match &ask.only_name {
                _ if ask.kind != ItemKind::Tool => self.tools.service.list(ask).await,
                None => self.listed(ask).await,
                Some(name) if self.is_search_tool(&ask.caller, name).await? => {
                    self.own.list(ask).await
                }
                Some(_) => self.tools.service.list(ask).await,
            }
        })
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(self.route_call(call))
    }

    fn changes(&self, want: ChangeFilter) -> BoxFuture<'_, Result<ChangeStream, Error>> {
        self.tools.service.changes(want)
    }
}
