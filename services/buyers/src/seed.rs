//! Randomness that can be repeated: SplitMix64 (Steele, Lea, Flood 2014) over a seed, a named stream and a
//! number. Thirty lines of our own, because a library's generator may change with its version, and a report
//! that prints its seed must mean the same buyers next year.

/// Where a round's draws come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The `n`th number of a stream. Streams are independent: drawing more of one changes nothing in another.
    pub fn draw(self, stream: &str, n: u64) -> u64 {
        // FNV-1a of the stream's name, so that a name is all it takes to have a stream.
        let name = stream.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        });
        mix(mix(mix(self.0) ^ name) ^ n)
    }

    /// The `n`th number of a stream, from 0 to `below - 1`. The bias of the remainder is far below anything a
    /// load test could notice.
    pub fn below(self, stream: &str, n: u64, below: u64) -> u64 {
        self.draw(stream, n) % below.max(1)
    }
}

fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_another_does_not() {
        assert_eq!(Seed(1).draw("key", 3), Seed(1).draw("key", 3));
        assert_ne!(Seed(1).draw("key", 3), Seed(2).draw("key", 3));
        assert_ne!(Seed(1).draw("key", 3), Seed(1).draw("card", 3));
        assert_ne!(Seed(1).draw("key", 3), Seed(1).draw("key", 4));
    }
}
