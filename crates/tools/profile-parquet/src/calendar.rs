//! Days and times of UTC.

const DAY: i64 = 86_400;

/// A time of UTC to the second, from the years 0 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Utc(i64);

impl Utc {
    /// From seconds since 1970. Times outside the years that can be written are moved to the nearest one.
    pub fn new(seconds: i64) -> Self {
        Self(seconds.clamp(-62_167_219_200, 253_402_300_799))
    }

    /// The beginning of its day.
    pub fn day(self) -> Self {
        Self(self.0.div_euclid(DAY).saturating_mul(DAY))
    }

    /// As `2026-11-25`.
    pub fn date(self) -> String {
        let (year, month, day) = self.civil();
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// As `20261125T103000Z`.
    pub fn compact(self) -> String {
        let (year, month, day) = self.civil();
        let second = self.0.rem_euclid(DAY);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
    }

    /// Year, month and day. The year begins in March, so that the day that comes and goes is its last one.
    #[expect(clippy::arithmetic_side_effects, reason = "the range of years is bounded")]
    fn civil(self) -> (i64, i64, i64) {
        // Days since 0000-03-01.
        let days = self.0.div_euclid(DAY) + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        (era * 400 + year + next, month, day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `date -u -d @SECONDS` prints them.
    #[test]
    fn times_are_written_as_date_does() {
        for (seconds, date, compact) in [
            (0, "1970-01-01", "19700101T000000Z"),
            (951_782_400, "2000-02-29", "20000229T000000Z"),
            (951_868_800, "2000-03-01", "20000301T000000Z"),
            (1_795_602_645, "2026-11-25", "20261125T103045Z"),
            (4_107_542_399, "2100-02-28", "21000228T235959Z"),
            (4_107_542_400, "2100-03-01", "21000301T000000Z"),
            (-1, "1969-12-31", "19691231T235959Z"),
            (i64::MAX, "9999-12-31", "99991231T235959Z"),
            (i64::MIN, "0000-01-01", "00000101T000000Z"),
        ] {
            let time = Utc::new(seconds);
            assert_eq!((time.date().as_str(), time.compact().as_str()), (date, compact));
        }
    }

    /// Against counting days one by one.
    #[test]
    fn days_follow_each_other() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..200_000 {
            assert_eq!(Utc::new(days * DAY).civil(), (year, month, day));
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 if is_leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }
}
