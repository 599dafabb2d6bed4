//! T44: the names that clients see and those of the servers map one to one, forth and back.

use super::offer::{Offer, all, use_it};
use proptest::{prelude::*, test_runner::TestRunner};
use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};
use toolgate::{
    Service,
    aggregate::{Aggregate, AggregateMember, NameRules},
    core::{ItemKind, Op},
};

/// The servers by their prefixes, each with the names of its tools.
type Servers = BTreeMap<String, BTreeSet<String>>;

/// Pairs of a server and a tool that are tried at least; `TOOLGATE_T44` says another number.
const PAIRS: usize = 10_000;

/// Names made of what joints, marks and hashes are made of, and any others.
fn tool() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "_",
            ".",
            "-",
            "-x",
            "/",
            "a",
            "A",
            "b",
            "\u{e9}",
            "e\u{301}",
            "\u{ff41}",
            "0123456789ab",
            "vvvvvvvvvvvv",
        ])
        .prop_map(str::to_owned),
        prop::sample::select(vec!["ab_c", "b_", "_a"]).prop_map(str::to_owned),
        (20_usize..40).prop_map(|n| "c".repeat(n)),
        prop::collection::vec(any::<char>(), 0..3)
            .prop_map(|all| all.into_iter().collect::<String>()),
    ];
    prop::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat())
}

fn prefix() -> impl Strategy<Value = String> {
    let letters = b"abcAZ019-x";
    let letter = prop::sample::select(letters.as_slice()).prop_map(char::from);
    let made = prop::sample::select(vec!["a-x0123456789ab", "c-x0123456789ab"]);
    prop_oneof![
        3 => prop::collection::vec(letter, 1..=32).prop_map(String::from_iter),
        2 => prop::sample::select(vec!["a", "b", "ab", "A", "a-"]).prop_map(str::to_owned),
        1 => made.prop_map(str::to_owned),
    ]
}

fn servers() -> impl Strategy<Value = Servers> {
    let tools = prop::collection::btree_set(tool(), 1..12);
    prop::collection::btree_map(prefix(), tools, 1..6).prop_map(|servers| {
        let mut copied = servers.clone();
        // One that is called as another one is on the wire, in full and without the prefix.
        for (prefix, tools) in &servers {
            for short in short(tools) {
                let made = format!("{prefix}_{short}");
                for (at, other) in copied.values_mut().enumerate() {
                    other.insert(if at % 2 == 0 {
                        made.clone()
                    } else {
                        short.clone()
                    });
                }
            }
        }
        copied
    })
}

/// The names of tools behind their prefix, as a gateway makes them, with a hash where it makes one.
fn short(tools: &BTreeSet<String>) -> Vec<String> {
    let servers = Servers::from([("p".to_owned(), tools.clone())]);
    let gateway = join(&servers, ItemKind::Tool, false).1;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let listed = runtime.unwrap().block_on(gateway.list(all(ItemKind::Tool)));
    let listed = listed.unwrap();
    let names = listed
        .items()
        .iter()
        .map(|item| &item.def.name()["p_".len()..]);
    names.map(str::to_owned).collect()
}

fn join(servers: &Servers, kind: ItemKind, bare: bool) -> (Vec<Arc<Offer>>, Aggregate) {
    let offer = |(id, tools): (&String, &BTreeSet<String>)| {
        let names: Vec<&str> = tools.iter().map(String::as_str).collect();
        Arc::new(Offer::new(id).with(kind, &names))
    };
    let offers: Vec<Arc<Offer>> = servers.iter().map(offer).collect();
    let member = |(id, offer): (&String, &Arc<Offer>)| AggregateMember {
        id: id.as_str().into(),
        prefix: if bare { String::new() } else { id.clone() },
        service: offer.clone(),
    };
    let members = servers.keys().zip(&offers).map(member).collect();
    (offers, Aggregate::new(members).unwrap())
}

/// Lists all, and uses each by the name that was listed, at a gateway that has listed nothing yet.
async fn forth_and_back(servers: &Servers, kind: ItemKind, op: Op, rules: NameRules) -> usize {
    let bare = servers.len() == 1;
    let joined = join(servers, kind, bare).1.names(rules);
    let listed = joined.list(all(kind)).await.unwrap();
    let (offers, cold) = join(servers, kind, bare);
    let cold = cold.names(rules);
    let mut seen = HashSet::new();
    let mut pairs = BTreeSet::new();
    for item in listed.items() {
        let name = item.def.name();
        let good = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
        let most = if rules == NameRules::Portable {
            64
        } else {
            128
        };
        let dot = name.contains('.') && rules == NameRules::Portable;
        assert!(
            (1..=most).contains(&name.len()) && name.bytes().all(good) && !dot,
            "{name:?}"
        );
        assert!(
            seen.insert(name.to_owned()),
            "{name:?} stands for two: {servers:?}"
        );
        let (server, own) = (&*item.origin.server, item.local_name.as_str());
        assert!(
            servers[server].contains(own),
            "{name:?} is {server:?} {own:?}"
        );
        pairs.insert((server.to_owned(), own.to_owned()));
        let reached = use_it(&cold, op, name).await.unwrap();
        let offer = &offers[servers.keys().position(|id| *id == reached).unwrap()];
        let called = offer.called().pop().unwrap();
        assert_eq!(
            (reached.as_str(), called.as_str()),
            (server, own),
            "{name:?}"
        );
    }
    let all: usize = servers.values().map(BTreeSet::len).sum();
    assert_eq!(
        (listed.items().len(), pairs.len()),
        (all, all),
        "{servers:?}"
    );
    all
}

#[test]
fn t44_names_on_the_wire_map_one_to_one() {
    let number = |text: String| text.parse().expect("a number of pairs");
    let least = std::env::var("TOOLGATE_T44").map_or(PAIRS, number);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (tried, rounds) = (Cell::new(0), Cell::new(0_u64));
    let config = ProptestConfig {
        cases: 16,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    while tried.get() < least {
        // A runner that had its cases runs no more of them.
        let run = TestRunner::new(config.clone()).run(&servers(), |servers| {
            let rules = match rounds.get() % 3 {
                0 => NameRules::Portable,
                _ => NameRules::Specification,
            };
            let (kind, op) = match rounds.get() % 4 {
                0 => (ItemKind::Prompt, Op::Prompt),
                _ => (ItemKind::Tool, Op::Tool),
            };
            let pairs = runtime.block_on(forth_and_back(&servers, kind, op, rules));
            tried.set(tried.get() + pairs);
            rounds.set(rounds.get() + 1);
            Ok(())
        });
        run.unwrap();
    }
    println!(
        "T44: {} pairs of a server and a name in {} gateways, each had a name of its own that led back to it",
        tried.get(),
        rounds.get()
    );
}
