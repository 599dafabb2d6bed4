//! T40: what one caller sees is never what another one may not see, however lists are kept on the way.

use super::run;
use serde_json::json;
use std::sync::Arc;
use tokio::io::{duplex, split};
use toolgate::{
    BoxFuture, CacheHint, Call, Caller, Catalog, Changes, Definition, Error, Interest, Item,
    ItemKind, Json, Kind, List, Origin, Outcome, Output, Service,
    client::{Remote, RemoteOptions},
    edge::{Front, ServerLimits, stdio},
};
use toolgate_core::Pipeline;
use toolgate_policy::{Access, AccessRule, Pattern, Standard, Then};

const CALLERS: usize = 50;
const TOOLS: usize = 200;
const LISTS: usize = 500;
const CALLS: usize = 2_000;

/// A server that lies: everybody may have the list of everybody.
struct Liar(Catalog);

impl Service for Liar {
    fn list(&self, ask: List) -> BoxFuture<'_, Result<Catalog, Error>> {
        let tools = (ask.kind == ItemKind::Tool).then(|| self.0.clone());
        Box::pin(async { Ok(tools.unwrap_or_default()) })
    }

    fn call(&self, _: Call) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async { Ok(Outcome::Done(Output::text("done"))) })
    }

    fn changes(&self, _: Interest) -> BoxFuture<'_, Result<Changes, Error>> {
        Box::pin(async { Err(Error::new(Kind::NotFound, "none")) })
    }
}

fn origin() -> Origin {
    Origin {
        server: "s".into(),
        trusted: true,
    }
}

/// The server elsewhere, whose list comes in pages and may be kept for an hour.
async fn elsewhere() -> Arc<Remote> {
    let tool = |n: usize| {
        let def = json!({"name": tool(n), "inputSchema": {"type": "object"}});
        let def = Definition::tool(Json::from_value(&def)).unwrap();
        Arc::new(Item::new(origin(), def))
    };
    let hint = CacheHint {
        ttl_ms: 3_600_000,
        public: true,
    };
    let catalog = Catalog::new((0..TOOLS).map(tool).collect()).with_hint(hint);
    let limits = ServerLimits {
        page: 37,
        ..ServerLimits::default()
    };
    let front = Front::new(Arc::new(Liar(catalog)), "s", "1", limits).unwrap();
    let (ours, theirs) = duplex(1 << 20);
    let (from, to) = split(theirs);
    #[allow(clippy::disallowed_methods, reason = "ends with its stream")]
    tokio::spawn(stdio::serve(Arc::new(front), Caller::new("gate"), from, to));
    let (from, to) = split(ours);
    Arc::new(
        Remote::open(from, to, RemoteOptions::new(origin()))
            .await
            .unwrap(),
    )
}

fn tool(n: usize) -> String {
    format!("t{n:03}")
}

fn caller(n: usize) -> Caller {
    Caller::new(format!("c{n}"))
}

/// What the operator wants, without any list or cache.
fn may(policy: usize, caller: usize, tool: usize) -> bool {
    !(caller * 31 + tool * 17 + policy * 7).is_multiple_of(3)
}

fn governed(end: &Arc<Remote>, policy: usize) -> Pipeline {
    let deny = |c: usize| AccessRule {
        tools: (0..TOOLS)
            .filter(|t| !may(policy, c, *t))
            .map(|t| Pattern::new(format!("s.{}", tool(t))))
            .collect(),
        callers: vec![Pattern::new(caller(c).name())],
        except: Vec::new(),
        then: Then::Deny,
        label: format!("rule {c}"),
    };
    let rules = (0..CALLERS).map(deny).collect();
    let access = Access::new(rules).otherwise(Then::Allow);
    let standard = Standard {
        access,
        ..Standard::default()
    };
    standard.over(end.clone())
}

/// Numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % most
    }
}

#[test]
fn no_list_of_one_caller_reaches_another() {
    run(async {
        let end = elsewhere().await;
        let policies = [governed(&end, 0), governed(&end, 1)];
        let (mut dice, mut looked) = (Dice(40), 0);
        for round in 0..LISTS {
            // The policy changes in the middle; what was kept under the first one must not show.
            let policy = usize::from(round >= LISTS / 2);
            let c = dice.below(CALLERS);
            let list = List::all(caller(c), ItemKind::Tool);
            let seen = policies[policy].list(list).await.unwrap();
            assert!(!seen.hint().public, "another caller may not have it");
            for t in 0..TOOLS {
                looked += 1;
                let shown = seen.find(&tool(t)).is_some();
                assert_eq!(shown, may(policy, c, t), "policy {policy} c{c} {}", tool(t));
            }
        }
        for call in 0..CALLS {
            let policy = usize::from(call >= CALLS / 2);
            let (c, t) = (dice.below(CALLERS), dice.below(TOOLS));
            let arguments = Json::from_value(&json!({}));
            let call = Call::tool(format!("c-{call}"), caller(c), tool(t), arguments);
            let outcome = policies[policy].call(call).await;
            match may(policy, c, t) {
                true => assert!(outcome.is_ok(), "{outcome:?}"),
                false => assert_eq!(*outcome.unwrap_err().kind(), Kind::NotFound),
            }
        }
        println!("T40: {looked} lookups and {CALLS} calls of {CALLERS} callers, none saw too much");
    });
}

/// Where nothing is hidden from anybody, the word of the server stands.
#[test]
fn a_list_that_is_the_same_for_all_may_be_kept_for_all() {
    run(async {
        let end = elsewhere().await;
        let all = Standard::default().over(end);
        let list = List::all(caller(1), ItemKind::Tool);
        assert!(all.list(list).await.unwrap().hint().public);
    });
}
