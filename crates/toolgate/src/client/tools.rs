//! The list of tools: its pages joined under a cap, and kept until it is stale.

use super::{
    link::{Failure, Purpose},
    open::stamp,
    remote::Remote,
    status::{LeftOut, harmless},
};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
};
use tokio::time::{Duration, Instant, timeout};
use toolgate_core::{Abilities, Catalog, Error, Item, Kind, List};
use toolgate_wire::{
    json::{Json, ObjectWriter},
    message::{RpcError, code},
    method::{
        self,
        tools_list::{Page, Tool},
    },
};

/// How long a list holds where the server tells nothing of changes.
const UNTOLD: Duration = Duration::from_secs(60);
/// How long a list holds at most.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a list holds once more after it could not be read again.
const RETRY: Duration = Duration::from_secs(5);

/// The last list.
#[derive(Default)]
pub(super) struct Tools {
    kept: Mutex<Option<Kept>>,
    left_out: Mutex<Vec<LeftOut>>,
    /// One reads, all others wait for what it read.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Kept {
    catalog: Catalog,
    /// Which signs of change it has seen.
    generation: u64,
    /// Until when it may be shown as the list.
    shown_until: Instant,
    /// Until when a name may be looked up in it.
    used_until: Instant,
}

impl Tools {
    /// How many tools the last list had.
    pub(super) fn count(&self) -> Option<usize> {
        self.kept().as_ref().map(|kept| kept.catalog.items().len())
    }

    /// The tools that were left out of the last list.
    pub(super) fn left_out(&self) -> Vec<LeftOut> {
        self.left_out
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn kept(&self) -> MutexGuard<'_, Option<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All pages of a list.
#[derive(Default)]
struct Joined {
    tools: Vec<Json>,
    ttl: Duration,
    cut: bool,
}

impl Remote {
    /// The whole list, kept as long as it is good. While nothing changes it is the same object.
    pub(super) async fn tools_for(&self, ask: List) -> Result<Catalog, Error> {
        let shown = ask.only.is_none();
        if let Some(kept) = self.good(shown) {
            return Ok(kept);
        }
        let _reading = self.tools.reading.lock().await;
        if let Some(kept) = self.good(shown) {
            return Ok(kept);
        }
        let generation = self.link.generation.load(Relaxed);
        match timeout(self.options.list, self.read_list()).await {
            Ok(Ok(joined)) => Ok(self.keep(joined, generation)),
            Ok(Err(error)) => self.old_list(error),
            Err(_) => self.old_list(self.upstream(format_args!(
                "did not list its tools within {:?}",
                self.options.list
            ))),
        }
    }

    fn good(&self, shown: bool) -> Option<Catalog> {
        if self.link.lost().borrow().is_some() {
            return None;
        }
        let kept = self.tools.kept();
        let kept = kept.as_ref()?;
        let until = if shown {
            kept.shown_until
        } else {
            kept.used_until
        };
        let unchanged = kept.generation == self.link.generation.load(Relaxed);
        (unchanged && Instant::now() < until).then(|| kept.catalog.clone())
    }

    /// The list could not be read again: the old one holds a little longer, as long as the server runs.
    fn old_list(&self, error: Error) -> Result<Catalog, Error> {
        let mut kept = self.tools.kept();
        let Some(kept) = kept
            .as_mut()
            .filter(|_| self.link.lost().borrow().is_none())
        else {
            return Err(error);
        };
        self.link.notes.say(format!(
            "an old list of its tools is used: {}",
            error.public()
        ));
        kept.generation = self.link.generation.load(Relaxed);
        kept.shown_until = Instant::now() + RETRY;
        kept.used_until = kept.shown_until;
        Ok(kept.catalog.clone())
    }

    async fn read_list(&self) -> Result<Joined, Error> {
        let mut joined = Joined::default();
        let (mut cursor, mut cursors) = (None::<Json>, HashSet::new());
        for _ in 0..self.options.pages {
            let page = match self.read_page(cursor.as_ref()).await {
                Ok(page) => page,
                Err(Failure::Rpc(error)) if cursor.is_none() && self.has_none(&error) => {
                    return Ok(joined);
                }
                Err(failure) => return Err(self.unlisted(failure)),
            };
            let ttl = Duration::from_millis(page.ttl_ms);
            joined.ttl = if cursor.is_none() {
                ttl
            } else {
                joined.ttl.min(ttl)
            };
            joined.tools.extend(page.tools);
            joined.cut = joined.tools.len() > self.options.tools;
            match page.next {
                None => return Ok(joined),
                Some(_) if joined.cut => return Ok(joined),
                Some(next) if !cursors.insert(next.as_str().to_owned()) => {
                    return Err(self.upstream("repeats the pages of its tools without end"));
                }
                next => cursor = next,
            }
        }
        Err(self.upstream(format_args!(
            "has more than {} pages of tools",
            self.options.pages
        )))
    }

    async fn read_page(&self, cursor: Option<&Json>) -> Result<Page, Failure> {
        let params = |_: &_| {
            let mut o = ObjectWriter::new();
            if self.peer.dialect.stateless {
                o.object("_meta", |m| {
                    stamp(
                        m,
                        self.peer.dialect,
                        &self.options.client,
                        Abilities::default(),
                    )
                });
            }
            if let Some(cursor) = cursor {
                o.raw("cursor", cursor);
            }
            o.finish()
        };
        let result = self
            .link
            .request(method::tools_list::NAME, Purpose::List, params)
            .await?;
        let kind = result
            .get("resultType")
            .filter(|_| self.peer.dialect.stateless);
        if kind.is_some_and(|kind| kind.str_cow().as_deref() != Some("complete")) {
            return Err(Failure::Malformed("the list is not complete"));
        }
        Page::read(&result).ok_or(Failure::Malformed("the list has no \"tools\""))
    }

    /// A server that declares no tools may well not know the method.
    fn has_none(&self, error: &RpcError) -> bool {
        error.code == code::METHOD_NOT_FOUND && !self.peer.has_tools()
    }

    fn unlisted(&self, failure: Failure) -> Error {
        match failure {
            Failure::Rpc(error) => self.upstream(format_args!(
                "answered when asked for its tools: {}",
                harmless(&error.message, 200)
            )),
            Failure::Malformed(reason) => {
                self.upstream(format_args!("sent a malformed list: {reason}"))
            }
            Failure::Lost { .. } => Error::new(
                Kind::Upstream,
                format!("the server {} stopped", self.name()),
            ),
        }
    }

    fn keep(&self, joined: Joined, generation: u64) -> Catalog {
        let shown = if self.peer.dialect.stateless {
            joined.ttl.min(LONGEST)
        } else if self.peer.tells_changes() {
            LONGEST
        } else {
            UNTOLD
        };
        let (items, left_out) = self.items(joined);
        *self
            .tools
            .left_out
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = left_out;
        let mut kept = self.tools.kept();
        let old = kept.as_ref();
        let catalog = match old.filter(|old| same_items(old.catalog.items(), &items)) {
            Some(old) => old.catalog.clone(),
            None => Catalog::of(items, Vec::new(), self.peer.instructions.clone()),
        };
        // A change that nobody told is told now.
        if old.is_some_and(|old| old.generation == generation && !old.catalog.same(&catalog)) {
            self.link.changes.send_modify(|stale| stale.tools += 1);
        }
        // Looking a name up before each call must not double the traffic where a list is stale at once.
        let (now, used) = (Instant::now(), shown.max(UNTOLD));
        let made = Kept {
            catalog: catalog.clone(),
            generation,
            shown_until: now + shown,
            used_until: now + used,
        };
        *kept = Some(made);
        catalog
    }

    /// The items that can be read; an unchanged one stays the same object.
    fn items(&self, joined: Joined) -> (Vec<Arc<Item>>, Vec<LeftOut>) {
        let old = self
            .tools
            .kept()
            .as_ref()
            .map(|kept| kept.catalog.clone())
            .unwrap_or_default();
        let (mut items, mut left_out, mut names) = (Vec::new(), Vec::new(), HashSet::new());
        for (at, json) in joined
            .tools
            .into_iter()
            .take(self.options.tools)
            .enumerate()
        {
            let name = json.get("name").and_then(|name| name.string());
            let shown =
                name.map_or_else(|| format!("number {}", at + 1), |name| harmless(&name, 128));
            match Tool::read(json) {
                Ok(tool) if !names.insert(tool.name().to_owned()) => {
                    left_out.push(LeftOut {
                        tool: shown,
                        reason: "its name stands in the list already".to_owned(),
                    });
                }
                Ok(tool) => items.push(
                    match old.find(tool.name()).filter(|item| item.tool == tool) {
                        Some(item) => item.clone(),
                        None => Arc::new(Item::new(self.options.origin.clone(), tool)),
                    },
                ),
                Err(reason) => left_out.push(LeftOut {
                    tool: shown,
                    reason: reason.to_owned(),
                }),
            }
        }
        if joined.cut {
            let reason = format!("the server lists more than {} tools", self.options.tools);
            left_out.push(LeftOut {
                tool: "all that follow".to_owned(),
                reason,
            });
        }
        (items, left_out)
    }
}

fn same_items(old: &[Arc<Item>], new: &[Arc<Item>]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| Arc::ptr_eq(old, new))
}
