//! Times in the listing and on the command line.

use std::fmt;
use std::str::FromStr;

use jitdump::Header;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// A time as typed: seconds with up to nine decimals, or a whole number of ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    whole: u64,
    /// The decimals as nanoseconds; `None` if there was no point.
    fraction: Option<u64>,
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a time: expected seconds like 12.345678901");
        let (whole, decimals) = match text.split_once('.') {
            Some((whole, decimals)) => (whole, Some(decimals)),
            None => (text, None),
        };
        let fraction = match decimals {
            None => None,
            Some(decimals) if decimals.len() > 9 || decimals.starts_with('+') => {
                return Err(wrong());
            }
            Some(decimals) => Some(format!("{decimals:0<9}").parse().map_err(|_| wrong())?),
        };
        let whole = whole.parse().map_err(|_| wrong())?;
        Ok(Self { whole, fraction })
    }
}

impl Time {
    /// The time in the unit of a dump's records.
    pub fn of(self, header: &Header) -> Result<u64, String> {
        if header.arch_timestamp() {
            return match self.fraction {
                None => Ok(self.whole),
                Some(_) => Err("this dump counts time in ticks of the processor's clock: pass a \
                                whole number as shown in the listing"
                    .to_owned()),
            };
        }
        let seconds = self.whole.checked_mul(SECOND);
        seconds
            .and_then(|nanoseconds| nanoseconds.checked_add(self.fraction.unwrap_or(0)))
            .ok_or_else(|| format!("{} seconds do not fit in 64 bits of nanoseconds", self.whole))
    }
}

/// A record's time as the listing shows it.
#[derive(Debug, Clone, Copy)]
pub struct ListedTime {
    /// In the dump's unit.
    pub time: u64,
    /// Whether that is ticks.
    pub ticks: bool,
}

impl fmt::Display for ListedTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ticks {
            return write!(f, "{:>20}", self.time);
        }
        write!(f, "{:>10}.{:09}", self.time / SECOND, self.time % SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitdump::Endian;

    fn nanoseconds(text: &str, flags: u64) -> Result<u64, String> {
        let header = Header {
            endian: Endian::Little,
            version: 1,
            total_size: 40,
            elf_mach: 62,
            pad1: 0,
            pid: 1,
            timestamp: 0,
            flags,
        };
        text.parse::<Time>()?.of(&header)
    }

    #[test]
    fn seconds_are_read_to_the_nanosecond() {
        assert_eq!(nanoseconds("12", 0), Ok(12_000_000_000));
        assert_eq!(nanoseconds("12.5", 0), Ok(12_500_000_000));
        assert_eq!(nanoseconds("12.000000001", 0), Ok(12_000_000_001));
        assert_eq!(nanoseconds("18446744073.709551615", 0), Ok(u64::MAX));
        for wrong in ["", ".", "x", "1.x", "-1", "1.0000000001", "1.+1", "99999999999"] {
            assert!(nanoseconds(wrong, 0).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ticks_are_whole() {
        assert_eq!(nanoseconds("12", 1), Ok(12));
        assert!(nanoseconds("12.5", 1).is_err());
    }

    #[test]
    fn what_is_shown_can_be_typed() {
        let shown = ListedTime { time: 12_000_000_345, ticks: false }.to_string();
        assert_eq!(shown, "        12.000000345");
        assert_eq!(nanoseconds(shown.trim(), 0), Ok(12_000_000_345));
    }
}
