//! Seeded random choices.

use std::cell::Cell;

/// Generator of random numbers (SplitMix64), the same for the same seed on every machine.
pub(super) struct Random(Cell<u64>);

impl Random {
    /// Creates the generator of the `nth` schema of a run.
    pub(super) fn new(seed: u64, nth: u64) -> Random {
        let random = Random(Cell::new(seed));
        let first = random.next() ^ nth.wrapping_mul(0xd1b5_4a32_d192_ed03);
        Random(Cell::new(first))
    }

    pub(super) fn next(&self) -> u64 {
        let mut mixed = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(mixed);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    pub(super) fn below(&self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Returns true once in `sides` times.
    pub(super) fn one_in(&self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    pub(super) fn pick<T: Clone>(&self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}
