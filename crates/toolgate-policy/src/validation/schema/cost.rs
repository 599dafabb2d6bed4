//! Cost estimate of a check.
//!
//! Alternatives that each examine the same member double the work at each level. A small schema can therefore take
//! exponential time for a small value. This module counts, level by level, how many subschemas examine one location
//! of a value at most, and what each does there. One pass over a value, without any schema, then adds up the cost.

use super::{
    PATTERN_KEYWORD,
    bounds::{SchemaGraph, SubschemaRelation},
    reference::ReferenceEdges,
    regex_cost,
};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Maximum number of subschemas that may examine one location.
const MAX_SUBSCHEMAS_PER_SITE: u64 = 20_000;
/// Maximum nesting of a value; the JSON parser rejects deeper ones.
pub(super) const MAX_VALUE_DEPTH: usize = 64;
/// Maximum steps of the estimate itself.
const MAX_ESTIMATE_STEPS: usize = 2_000_000;
/// Maximum number of distinct locations plus the member names in them.
const MAX_COST_SITES: usize = 4096;

/// Maximum of (nested values × subschemas per location) up to which all errors are listed.
const MAX_LISTED_ERROR_WORK: u64 = 20_000;

/// Nanoseconds in a release build to evaluate one subschema.
const SUBSCHEMA_NANOS: u64 = 10;
/// Nanoseconds to compare with one value.
const COMPARE_NANOS: u64 = 3;
/// Nanoseconds for an exact division (`multipleOf`).
const DIVIDE_NANOS: u64 = 6000;
/// Nanoseconds to compare one item of a list with all others by hash (`uniqueItems`).
const HASH_ITEM_NANOS: u64 = 300;
/// Nanoseconds to compare two values of a list with equal hashes.
const HASH_COLLISION_NANOS: u64 = 2;
/// Nanoseconds to look up a member name, or to skip a value that no subschema examines.
const MEMBER_NANOS: u64 = 20;

/// Number of times that each subschema examines a location, sorted by the rank of the subschema.
type SubschemaCounts = Vec<(usize, u64)>;

/// The bounds on checking a value.
pub(super) struct CheckEstimate {
    /// Maximum nesting of values: [`MAX_VALUE_DEPTH`] for nearly all schemas.
    pub(super) depth: usize,
    pub(super) cost: CheckCost,
}

/// Estimated cost of checking a value, in nanoseconds.
pub(crate) struct CheckCost {
    /// The distinct locations; the first is the whole value. Empty if there are too many to distinguish.
    sites: Vec<CostSite>,
    /// Upper bound for every location.
    worst: CostSite,
}

/// Cost at one location of a value, and the locations below it.
#[derive(Clone, Default)]
struct CostSite {
    /// Number of subschemas that examine it.
    subschemas: u64,
    /// Cost of any value.
    each: u64,
    /// Cost for each byte of a string.
    text: u64,
    /// Cost for each byte of a member name.
    names: u64,
    /// Cost for each member or item, to track which subschemas evaluated it.
    seen: u64,
    /// Number of times that all items are compared with each other.
    unique: u64,
    members: HashMap<String, usize>,
    other: usize,
    items: usize,
}

impl CostSite {
    fn add(&mut self, schema: &Map<String, Value>, n: u64) {
        let add = |sum: &mut u64, cost: u64| *sum = sum.saturating_add(cost.saturating_mul(n));
        add(&mut self.subschemas, 1);
        let has = |key: &str| schema.contains_key(key);
        let lists = ["enum", "const", "required", "dependentRequired"];
        let compared = lists.iter().filter_map(|key| schema.get(*key)).map(values);
        let compared = compared.fold(0, u64::saturating_add);
        let divides = if has("multipleOf") { DIVIDE_NANOS } else { 0 };
        add(
            &mut self.each,
            SUBSCHEMA_NANOS + COMPARE_NANOS * compared + divides,
        );
        for key in ["pattern", PATTERN_KEYWORD] {
            if let Some(Value::String(pattern)) = schema.get(key) {
                add(&mut self.text, regex_cost::cost(pattern));
            }
        }
        if has("minLength") || has("maxLength") {
            add(&mut self.text, 1);
        }
        if has("format") {
            add(&mut self.text, 10);
        }
        if let Some(Value::Object(patterns)) = schema.get("patternProperties") {
            patterns
                .keys()
                .for_each(|key| add(&mut self.names, regex_cost::cost(key)));
        }
        if has("unevaluatedProperties") || has("unevaluatedItems") {
            add(&mut self.seen, 2);
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            add(&mut self.unique, 1);
        }
    }

    fn take_worst(&mut self, other: &CostSite) {
        self.subschemas = self.subschemas.max(other.subschemas);
        self.each = self.each.max(other.each);
        self.text = self.text.max(other.text);
        self.names = self.names.max(other.names);
        self.seen = self.seen.max(other.seen);
        self.unique = self.unique.max(other.unique);
    }
}

/// Counts the nested values, including member names.
fn values(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(values).sum::<u64>(),
        Value::Object(map) => 1 + map.values().map(|v| 1 + values(v)).sum::<u64>(),
        _ => 1,
    }
}

impl CheckCost {
    /// Returns the maximum cost of checking this value.
    pub(super) fn of(&self, value: &Value) -> u64 {
        self.at(value, 0)
    }

    /// Returns the maximum cost for any value with this many bytes, as a tree or unparsed. Fast, but pessimistic for
    /// values that are not short.
    pub(super) fn of_short(&self, bytes: usize) -> u64 {
        let worst = &self.worst;
        if worst.unique > 0 {
            return u64::MAX;
        }
        // Each byte may be a value or a member: examined itself, by `other` locations, and to track its evaluation.
        let each = worst.each.saturating_add(MEMBER_NANOS).saturating_mul(2);
        let texts = worst.text.saturating_mul(2).saturating_add(worst.names);
        let seen = worst.seen.saturating_mul(worst.each);
        // A check of an unparsed value scans all of it, once for each level that contains it.
        let steps = worst.subschemas.saturating_mul(MAX_VALUE_DEPTH as u64);
        let all = [each, texts, seen, steps];
        let all = all.into_iter().fold(0, u64::saturating_add);
        all.saturating_mul(bytes as u64)
    }

    /// Returns whether all errors of a value may be listed: each subschema may report one, and repeats the value in
    /// it.
    pub(super) fn may_list_errors(&self, value: &Value) -> bool {
        values(value).saturating_mul(self.worst.subschemas) <= MAX_LISTED_ERROR_WORK
    }

    fn site(&self, at: usize) -> &CostSite {
        self.sites.get(at).unwrap_or(&self.worst)
    }

    /// Adds up the cost recursively. The JSON parser bounds the recursion.
    fn at(&self, value: &Value, at: usize) -> u64 {
        let site = self.site(at);
        let each = site.each.saturating_add(MEMBER_NANOS);
        let seen = |count: usize| {
            let looks = site.seen.saturating_mul(site.each);
            looks.saturating_mul(count as u64)
        };
        let within = match value {
            Value::String(text) => bytes(text, site.text),
            Value::Array(items) => {
                let within = items.iter().map(|item| self.at(item, site.items));
                let within = within.fold(seen(items.len()), u64::saturating_add);
                within.saturating_add(match site.unique {
                    0 => 0,
                    times => unique(items).saturating_mul(times),
                })
            }
            Value::Object(map) => {
                let other = self.site(site.other);
                let members = map.iter().map(|(name, member)| {
                    // Checks of names are counted among the checks of other members.
                    let names = bytes(name, site.names.saturating_add(other.text));
                    let next = site.members.get(name).copied().unwrap_or(site.other);
                    let member = self.at(member, next).saturating_add(other.each);
                    names.saturating_add(member).saturating_add(MEMBER_NANOS)
                });
                members.fold(seen(map.len()), u64::saturating_add)
            }
            _ => 0,
        };
        each.saturating_add(within)
    }
}

fn bytes(text: &str, each: u64) -> u64 {
    (text.len() as u64).saturating_mul(each)
}

/// Returns the cost of `uniqueItems`. Numbers that a float cannot distinguish share a hash, and so may lists and
/// objects.
fn unique(items: &[Value]) -> u64 {
    const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;
    let told_apart = |item: &Value| match item {
        Value::Array(_) | Value::Object(_) => false,
        Value::Number(number) => number.as_f64().is_some_and(|n| n.abs() < MAX_EXACT_FLOAT),
        _ => true,
    };
    let count = items.len() as u64;
    if items.iter().all(told_apart) {
        return count.saturating_mul(HASH_ITEM_NANOS);
    }
    let all = items.iter().map(values).fold(0, u64::saturating_add);
    count.saturating_mul(
        all.saturating_mul(HASH_COLLISION_NANOS)
            .saturating_add(HASH_ITEM_NANOS),
    )
}

/// Estimates the cost of checking values against a schema.
///
/// # Errors
/// The schema refers to itself without descending into the value, or is too expensive even for flat values.
pub(super) fn of(graph: &SchemaGraph<'_>, edges: &ReferenceEdges) -> Result<CheckEstimate, String> {
    let mut count = CostEstimator::new(graph, edges)?;
    let mut sites = CostSites::default();
    let Some(&root) = count.rank.first() else {
        // The schema is `true` or `false`.
        let cost = sites.cost();
        return Ok(CheckEstimate {
            depth: MAX_VALUE_DEPTH,
            cost,
        });
    };
    let first = count.spread(vec![(root, 1)]);
    let mut level = vec![sites.intern(first).0];
    for depth in 0..MAX_VALUE_DEPTH {
        let most = level
            .iter()
            .map(|at| sites.subschemas_at(*at))
            .max()
            .unwrap_or(0);
        if most > MAX_SUBSCHEMAS_PER_SITE || count.steps > MAX_ESTIMATE_STEPS {
            let depth = depth.checked_sub(1).ok_or_else(too_much)?;
            let cost = sites.worst_of(&count);
            return Ok(CheckEstimate { depth, cost });
        }
        let mut next = Vec::new();
        for at in level {
            sites.fill(at, &count);
            next.extend(count.deeper(at, &mut sites));
        }
        level = next;
        if level.is_empty() && count.steps <= MAX_ESTIMATE_STEPS {
            let cost = sites.cost();
            return Ok(CheckEstimate {
                depth: MAX_VALUE_DEPTH,
                cost,
            });
        }
    }
    let cost = sites.worst_of(&count);
    Ok(CheckEstimate {
        depth: MAX_VALUE_DEPTH,
        cost,
    })
}

fn too_much() -> String {
    "validation against the schema would take too long".to_owned()
}

/// The known locations; two that the same subschemas examine equally often are one.
#[derive(Default)]
struct CostSites {
    counts: Vec<SubschemaCounts>,
    known: HashMap<SubschemaCounts, usize>,
    sites: Vec<CostSite>,
    names: usize,
}

impl CostSites {
    /// Returns the index of a location, and whether it is new.
    fn intern(&mut self, looks: SubschemaCounts) -> (usize, bool) {
        if let Some(&at) = self.known.get(&looks) {
            return (at, false);
        }
        let at = self.counts.len();
        self.known.insert(looks.clone(), at);
        self.counts.push(looks);
        self.sites.push(CostSite::default());
        (at, true)
    }

    fn subschemas_at(&self, at: usize) -> u64 {
        let looks = self.counts[at].iter();
        looks.fold(0, |sum: u64, (_, n)| sum.saturating_add(*n))
    }

    fn fill(&mut self, at: usize, count: &CostEstimator<'_>) {
        for &(rank, n) in &self.counts[at] {
            let part = &count.graph.parts[count.order[rank]];
            self.sites[at].add(part.schema, n);
        }
    }

    fn cost(self) -> CheckCost {
        let mut worst = CostSite::default();
        self.sites.iter().for_each(|site| worst.take_worst(site));
        let few = self.sites.len() + self.names <= MAX_COST_SITES;
        let sites = if few { self.sites } else { Vec::new() };
        CheckCost { sites, worst }
    }

    /// Returns the cost where not all locations are known: the known ones bound the others.
    fn worst_of(mut self, count: &CostEstimator<'_>) -> CheckCost {
        (0..self.sites.len())
            .filter(|at| self.sites[*at].each == 0)
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|at| self.fill(at, count));
        self.names = MAX_COST_SITES + 1;
        self.cost()
    }
}

struct CostEstimator<'g> {
    graph: &'g SchemaGraph<'g>,
    /// Subschemas in topological order: each before the subschemas that it applies to the same value.
    order: Vec<usize>,
    rank: Vec<usize>,
    same: Vec<Vec<usize>>,
    steps: usize,
}

impl<'g> CostEstimator<'g> {
    fn new(
        graph: &'g SchemaGraph<'g>,
        edges: &ReferenceEdges,
    ) -> Result<CostEstimator<'g>, String> {
        let same: Vec<Vec<usize>> = graph
            .parts
            .iter()
            .zip(edges)
            .map(|(part, edges)| {
                let within = part
                    .within
                    .iter()
                    .filter(|(place, _)| *place == SubschemaRelation::Same)
                    .map(|(_, to)| *to);
                within.chain(edges.iter().copied()).collect()
            })
            .collect();
        let order = order(&same)?;
        let mut rank = vec![0; order.len()];
        order
            .iter()
            .enumerate()
            .for_each(|(at, part)| rank[*part] = at);
        Ok(CostEstimator {
            graph,
            order,
            rank,
            same,
            steps: 0,
        })
    }

    /// Follows references and combinators at one location.
    fn spread(&mut self, mut looks: SubschemaCounts) -> SubschemaCounts {
        let mut at = 0;
        while let Some(&(rank, n)) = looks.get(at) {
            // They have higher ranks, so they come later in the list.
            for to in &self.same[self.order[rank]] {
                add(&mut looks, self.rank[*to], n);
                self.steps += 1;
            }
            at += 1;
        }
        looks
    }

    /// Returns the new locations one level deeper. Each member name has its own location, and items have another.
    fn deeper(&mut self, at: usize, sites: &mut CostSites) -> Vec<usize> {
        let (mut items, mut members) = (SubschemaCounts::new(), SubschemaCounts::new());
        let mut named: HashMap<&str, SubschemaCounts> = HashMap::new();
        let graph = self.graph;
        for &(rank, n) in &sites.counts[at] {
            for (place, to) in &graph.parts[self.order[rank]].within {
                let looks = match place {
                    SubschemaRelation::Items => &mut items,
                    SubschemaRelation::Members => &mut members,
                    SubschemaRelation::Member(name) => named.entry(name).or_default(),
                    SubschemaRelation::Same | SubschemaRelation::Definition => continue,
                };
                add(looks, self.rank[*to], n);
                self.steps += 1;
            }
        }
        let mut new = Vec::new();
        let mut place =
            |count: &mut CostEstimator<'_>, sites: &mut CostSites, looks: SubschemaCounts| {
                let (at, is_new) = sites.intern(count.spread(looks));
                new.extend(is_new.then_some(at));
                at
            };
        for (name, mut looks) in named {
            // The bound is exceeded anyway, so the rest does not matter.
            if self.steps > MAX_ESTIMATE_STEPS {
                break;
            }
            members
                .iter()
                .for_each(|(rank, n)| add(&mut looks, *rank, *n));
            self.steps += members.len();
            let to = place(self, sites, looks);
            sites.names += 1;
            sites.sites[at].members.insert(name.to_owned(), to);
        }
        sites.sites[at].other = place(self, sites, members);
        sites.sites[at].items = place(self, sites, items);
        new
    }
}

fn add(looks: &mut SubschemaCounts, rank: usize, n: u64) {
    match looks.binary_search_by_key(&rank, |(known, _)| *known) {
        Ok(at) => looks[at].1 = looks[at].1.saturating_add(n),
        Err(at) => looks.insert(at, (rank, n)),
    }
}

fn order(same: &[Vec<usize>]) -> Result<Vec<usize>, String> {
    let mut before = vec![0_usize; same.len()];
    same.iter().flatten().for_each(|to| before[*to] += 1);
    let mut order: Vec<usize> = (0..same.len()).filter(|at| before[*at] == 0).collect();
    let mut done = 0;
    while let Some(&at) = order.get(done) {
        done += 1;
        for to in &same[at] {
            before[*to] -= 1;
            if before[*to] == 0 {
                order.push(*to);
            }
        }
    }
    match order.len() == same.len() {
        true => Ok(order),
        false => Err("the schema refers to itself without end".to_owned()),
    }
}
