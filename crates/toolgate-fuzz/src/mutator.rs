//! Seeded mutation of inputs.

use toolgate_testkit::SeededRng;

/// Maximum size of a mutated input, in bytes.
const MAX_INPUT_BYTES: usize = 8 * 1024;
/// Maximum number of changes between a seed and an input.
const MAX_MUTATIONS: usize = 6;
/// Bytes that readers treat in a special way.
const SPECIAL_BYTES: &[u8] =
    b"\0\t\n\r \"#%&'()*+,-./0:;<=>?@[\\]_`{|}~\x7f\x80\xbf\xc0\xed\xf4\xff";
/// Fragments that readers treat in a special way.
const SPECIAL_FRAGMENTS: &[&str] = &[
    "\\u0000",
    "\\ud800",
    "\\udfff",
    "1e999",
    "-0",
    "0.1",
    "9007199254740993",
    "18446744073709551616",
    "null",
    "true",
    "[]",
    "{}",
    "[[",
    "{\"",
    "\u{feff}",
    "\u{202e}",
    "\u{e0041}",
    "%00",
    "..",
    "//",
    "\r\n",
    "\n\n",
    "[::1]",
];

/// Source of inputs: mutations of seeds, with fragments of other seeds.
pub(crate) struct InputMutator<'a> {
    seeds: &'a [Vec<u8>],
    random: SeededRng,
}

impl<'a> InputMutator<'a> {
    pub(crate) fn new(seeds: &'a [Vec<u8>], seed: u64) -> InputMutator<'a> {
        InputMutator {
            seeds,
            random: SeededRng::new(seed),
        }
    }

    /// Returns the next input.
    pub(crate) fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.any_seed().to_vec();
        for _ in 0..=self.random.below(MAX_MUTATIONS) {
            self.mutate(&mut input);
        }
        input.truncate(MAX_INPUT_BYTES);
        input
    }

    fn any_seed(&mut self) -> &'a [u8] {
        let at = self.random.below(self.seeds.len().max(1));
        self.seeds.get(at).map_or(&[], Vec::as_slice)
    }

    /// Returns a random range of at most 32 bytes within `length`.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.random.below(length + 1);
        let most = (length - from).min(32);
        from..from + self.random.below(most + 1)
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let at = self.random.below(input.len() + 1);
        match self.random.below(8) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.random.below(8);
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = SPECIAL_BYTES[self.random.below(SPECIAL_BYTES.len())];
                }
            }
            2 => {
                let byte = SPECIAL_BYTES[self.random.below(SPECIAL_BYTES.len())];
                input.insert(at, byte);
            }
            3 => {
                let gone = self.range(input.len());
                input.drain(gone);
            }
            4 => {
                let copied = self.range(input.len());
                let copied = input[copied].to_vec();
                input.splice(at..at, copied);
            }
            5 => {
                let fragment = SPECIAL_FRAGMENTS[self.random.below(SPECIAL_FRAGMENTS.len())];
                input.splice(at..at, fragment.bytes());
            }
            6 => {
                let other = self.any_seed();
                let part = self.range(other.len());
                let replaced = self.range(input.len());
                input.splice(replaced, other[part].iter().copied());
            }
            _ => self.nest(input),
        }
    }

    /// Repeats a byte or a range many times, for limits of depth and size.
    fn nest(&mut self, input: &mut Vec<u8>) {
        let part = self.range(input.len());
        let (at, times) = (part.start, 1 + self.random.below(100));
        let part = input[part].to_vec();
        if part.len() * times <= MAX_INPUT_BYTES {
            input.splice(at..at, part.repeat(times));
        }
    }
}
