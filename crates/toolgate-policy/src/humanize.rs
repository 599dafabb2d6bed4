//! Human-readable sizes and durations, for messages to people and models.

use std::time::Duration;

/// Formats a duration: `12 s`, `15 min`, `2 h`. Seconds are rounded up, so that no client retries too early.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    match seconds {
        0..120 => format!("{seconds} s"),
        _ if seconds.is_multiple_of(3600) => format!("{} h", seconds / 3600),
        _ if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}

/// Formats a size: `812 bytes`, `64 KiB`, `16.5 MiB`.
pub(crate) fn size(bytes: usize) -> String {
    const KIB: usize = 1024;
    match bytes {
        0..KIB => format!("{bytes} bytes"),
        _ if bytes < KIB * KIB => tenths(bytes, KIB, "KiB"),
        _ => tenths(bytes, KIB * KIB, "MiB"),
    }
}

/// Formats one decimal, rounded up, so that one byte over a limit never reads as the limit.
fn tenths(bytes: usize, unit: usize, name: &str) -> String {
    let tenths = (bytes * 10).div_ceil(unit);
    match tenths % 10 {
        0 => format!("{} {name}", tenths / 10),
        rest => format!("{}.{rest} {name}", tenths / 10),
    }
}

/// Makes an untrusted word safe for a message: at most 60 characters, all printable ASCII.
pub(crate) fn printable(word: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() { c } else { '?' };
    word.chars().take(60).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        assert_eq!(duration(Duration::from_millis(11_001)), "12 s");
        assert_eq!(duration(Duration::from_secs(60)), "60 s");
        assert_eq!(duration(Duration::from_secs(600)), "10 min");
        assert_eq!(duration(Duration::from_secs(601)), "601 s");
        assert_eq!(duration(Duration::from_secs(7200)), "2 h");
    }

    #[test]
    fn sizes() {
        assert_eq!(size(812), "812 bytes");
        assert_eq!(size(65_536), "64 KiB");
        assert_eq!(size(65_537), "64.1 KiB");
        assert_eq!(size(16 << 20), "16 MiB");
        assert_eq!(size((16 << 20) + 1), "16.1 MiB");
    }
}
