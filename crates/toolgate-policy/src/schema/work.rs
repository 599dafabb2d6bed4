//! How much work checking a value can be.
//!
//! Alternatives that each look at the same member again double the work at each level, so a small schema can take for
//! ever on a small value. Here it is counted, level by level, how many schemas look at one place of a value at most.

use super::{
    bounds::{Graph, Place},
    reference::Edges,
};
use std::collections::{BTreeMap, HashMap};

/// The schemas that may look at one place.
const LOOKS: u64 = 20_000;
/// Values deeper than the reader lets in need no look.
const DEEPEST: usize = 64;
/// The steps that the counting itself may take.
const STEPS: usize = 2_000_000;

/// How often each part looks at a place, by the rank of the part.
type Looks = BTreeMap<usize, u64>;

/// How deep values may be: [`DEEPEST`] for nearly all schemas.
///
/// # Errors
/// The schema refers to itself without looking deeper, or is too much work even for flat values.
pub(super) fn depth(graph: &Graph<'_>, edges: &Edges) -> Result<usize, String> {
    let mut count = Count::new(graph, edges)?;
    let root = count.rank[0];
    let mut here = count.spread(Looks::from([(root, 1)]))?;
    for depth in 0..DEEPEST {
        if here.values().fold(0, |sum: u64, n| sum.saturating_add(*n)) > LOOKS {
            return match depth {
                0 => Err(too_much()),
                depth => Ok(depth - 1),
            };
        }
        let next = count.deeper(&here)?;
        if next == here {
            break;
        }
        here = next;
    }
    Ok(DEEPEST)
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
    fn spread(&mut self, mut waiting: Looks) -> Result<Looks, String> {
        let mut done = Looks::new();
        while let Some((rank, n)) = waiting.pop_first() {
            done.insert(rank, n);
            for to in &self.same[self.order[rank]] {
                let sum = waiting.entry(self.rank[*to]).or_default();
                *sum = sum.saturating_add(n);
                self.steps += 1;
            }
        }
        if self.steps > STEPS {
            Err(too_much())
        } else {
            Ok(done)
        }
    }

    /// The most that any place one level deeper is looked at. Members of two names are two places.
    fn deeper(&mut self, here: &Looks) -> Result<Looks, String> {
        let (mut items, mut members) = (Looks::new(), Looks::new());
        let mut named: HashMap<&str, Looks> = HashMap::new();
        for (&rank, &n) in here {
            let graph = self.graph;
            for (place, to) in &graph.parts[self.order[rank]].within {
                let looks = match place {
                    Place::Items => &mut items,
                    Place::Members => &mut members,
                    Place::Member(name) => named.entry(name).or_default(),
                    Place::Same | Place::Kept => continue,
                };
                let sum = looks.entry(self.rank[*to]).or_default();
                *sum = sum.saturating_add(n);
            }
        }
        let mut most = self.spread(items)?;
        raise(&mut most, self.spread(members.clone())?);
        for (_, mut place) in named {
            for (rank, n) in &members {
                let sum = place.entry(*rank).or_default();
                *sum = sum.saturating_add(*n);
            }
            raise(&mut most, self.spread(place)?);
        }
        Ok(most)
    }
}

fn raise(most: &mut Looks, other: Looks) {
    for (rank, n) in other {
        let old = most.entry(rank).or_default();
        *old = n.max(*old);
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
        false => Err("it refers to itself without end".to_owned()),
    }
}
