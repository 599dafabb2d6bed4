//! How much work checking a value can be.
//!
//! Alternatives that each look at the same member again double the work at each level, so a small schema can take for
//! ever on a small value. Here it is counted, level by level, how many schemas look at one place of a value at most.

use super::{
    bounds::{Graph, Place},
    reference::Edges,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The schemas that may look at one place.
const LOOKS: u64 = 20_000;
/// Values deeper than the reader lets in need no look.
const DEEPEST: usize = 64;
/// The steps that the counting itself may take.
const STEPS: usize = 2_000_000;

/// How often each part looks at a place, by the rank of the part.
type Looks = BTreeMap<usize, u64>;

/// What checking a value takes.
pub(super) struct Work {
    /// How deep values may be: [`DEEPEST`] for nearly all schemas.
    pub(super) depth: usize,
    /// The schemas that look at one place, at most.
    pub(super) looks: u64,
}

/// What checking a value takes.
///
/// # Errors
/// The schema refers to itself without looking deeper, or is too much work even for flat values.
pub(super) fn of(graph: &Graph<'_>, edges: &Edges) -> Result<Work, String> {
    let mut count = Count::new(graph, edges)?;
    let Some(&root) = count.rank.first() else {
        // `true` or `false`.
        return Ok(Work {
            depth: DEEPEST,
            looks: 1,
        });
    };
    let mut level = vec![count.spread(Looks::from([(root, 1)]))];
    // A place that is looked at as another was leads to nothing new.
    let mut known: BTreeSet<Looks> = level.iter().cloned().collect();
    let mut looks = 1;
    for depth in 0..DEEPEST {
        let most = level
            .iter()
            .map(|looks| looks.values().fold(0, |sum: u64, n| sum.saturating_add(*n)));
        let most = most.max().unwrap_or(0);
        if most > LOOKS || count.steps > STEPS {
            let depth = depth.checked_sub(1).ok_or_else(too_much)?;
            return Ok(Work { depth, looks });
        }
        looks = looks.max(most);
        let deeper = level.iter().flat_map(|looks| count.deeper(looks));
        level = deeper.filter(|looks| known.insert(looks.clone())).collect();
        if level.is_empty() {
            break;
        }
    }
    Ok(Work {
        depth: DEEPEST,
        looks,
    })
}

fn too_much() -> String {
    "checking it would take too long".to_owned()
}

struct Count<'g> {
    graph: &'g Graph<'g>,
    /// The parts in an order in which each stands before those that judge the same value for it.
    order: Vec<usize>,
    rank: Vec<usize>,
    same: Vec<Vec<usize>>,
    steps: usize,
}

impl<'g> Count<'g> {
    fn new(graph: &'g Graph<'g>, edges: &Edges) -> Result<Count<'g>, String> {
        let same: Vec<Vec<usize>> = graph
            .parts
            .iter()
            .zip(edges)
            .map(|(part, edges)| {
                let within = part
                    .within
                    .iter()
                    .filter(|(place, _)| *place == Place::Same)
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
        Ok(Count {
            graph,
            order,
            rank,
            same,
            steps: 0,
        })
    }

    /// Follows references and combinations at one place.
    fn spread(&mut self, mut waiting: Looks) -> Looks {
        let mut done = Looks::new();
        while let Some((rank, n)) = waiting.pop_first() {
            done.insert(rank, n);
            for to in &self.same[self.order[rank]] {
                let sum = waiting.entry(self.rank[*to]).or_default();
                *sum = sum.saturating_add(n);
                self.steps += 1;
            }
        }
        done
    }

    /// The places one level deeper. Members of two names are two places, and items a third.
    fn deeper(&mut self, here: &Looks) -> Vec<Looks> {
        let (mut items, mut members) = (Looks::new(), Looks::new());
        let mut named: HashMap<&str, Looks> = HashMap::new();
        let graph = self.graph;
        for (&rank, &n) in here {
            for (place, to) in &graph.parts[self.order[rank]].within {
                let looks = match place {
                    Place::Items => &mut items,
                    Place::Members => &mut members,
                    Place::Member(name) => named.entry(name).or_default(),
                    Place::Same | Place::Kept => continue,
                };
                add(looks, self.rank[*to], n);
                self.steps += 1;
            }
        }
        let mut places: Vec<Looks> = named.into_values().collect();
        places
            .iter_mut()
            .for_each(|place| members.iter().for_each(|(rank, n)| add(place, *rank, *n)));
        places.extend([items, members]);
        // Far beyond what is allowed anyway, the rest need not be known.
        let room = |count: &Count<'_>| count.steps <= STEPS;
        places
            .into_iter()
            .map_while(|place| room(self).then(|| self.spread(place)))
            .collect()
    }
}

fn add(looks: &mut Looks, rank: usize, n: u64) {
    let sum = looks.entry(rank).or_default();
    *sum = sum.saturating_add(n);
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
        false => Err("it refers to itself without end".to_owned()),
    }
}
