//! Deterministic pseudo-random numbers.

/// Pseudo-random number generator with the same sequence in every run, so that failures are reproducible.
///
/// ```
/// use toolgate_testkit::SeededRng;
///
/// let (mut one, mut other) = (SeededRng::new(7), SeededRng::new(7));
/// for _ in 0..100 {
///     let rolled = one.below(6);
///     assert!(rolled < 6);
///     assert_eq!(rolled, other.below(6));
/// }
/// ```
#[derive(Debug, Clone)]
pub struct SeededRng(u64);

impl SeededRng {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number below `sides`.
    ///
    /// # Panics
    ///
    /// Panics if `sides` is 0.
    pub fn below(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}
