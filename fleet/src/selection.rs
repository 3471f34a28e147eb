//! Which hosts, services and times are asked about.

use datafusion::arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use datafusion::prelude::{Expr, col, lit};
use datafusion::scalar::ScalarValue;

/// Which samples are asked about. An option that may be repeated selects what any of its values does.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Which samples")]
pub struct Selection {
    /// Only this service (repeatable)
    #[arg(long, value_name = "NAME")]
    pub service: Vec<String>,
    /// Only this version of the service (repeatable)
    #[arg(long, value_name = "VERSION")]
    pub service_version: Vec<String>,
    /// Only this host (repeatable)
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Only windows that begin at this time or later: 2026-11-25, or 2026-11-25T10:30:00Z
    #[arg(long, value_name = "TIME", value_parser = microseconds)]
    pub since: Option<i64>,
    /// Only windows that begin before this time
    #[arg(long, value_name = "TIME", value_parser = microseconds)]
    pub until: Option<i64>,
}

/// A time in UTC, in microseconds since 1970.
fn microseconds(text: &str) -> Result<i64, String> {
    let time = string_to_timestamp_nanos(text).map_err(|error| error.to_string())?;
    Ok(time.div_euclid(1000))
}

impl Selection {
    /// The condition on the rows of `codes`, and of `samples` but for the time.
    pub fn of_origin(&self) -> Option<Expr> {
        let any = |column: &str, values: &[String]| {
            let values: Vec<Expr> = values.iter().map(|value| lit(value.as_str())).collect();
            (!values.is_empty()).then(|| col(column).in_list(values, false))
        };
        let conditions = [
            any("service", &self.service),
            any("version", &self.service_version),
            any("host", &self.host),
        ];
        conditions.into_iter().flatten().reduce(Expr::and)
    }

    /// The condition on the rows of `samples`.
    pub fn of_samples(&self) -> Option<Expr> {
        let time =
            |time: i64| lit(ScalarValue::TimestampMicrosecond(Some(time), Some("UTC".into())));
        let since = self.since.map(|since| col("window_start").gt_eq(time(since)));
        let until = self.until.map(|until| col("window_start").lt(time(until)));
        [self.of_origin(), since, until].into_iter().flatten().reduce(Expr::and)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_or_instants_in_utc() {
        assert_eq!(microseconds("1970-01-02"), Ok(86_400_000_000));
        assert_eq!(microseconds("1970-01-01T01:00:00Z"), Ok(3_600_000_000));
        assert_eq!(microseconds("1970-01-01T01:00:00+01:00"), Ok(0));
        assert!(microseconds("yesterday").is_err());
    }
}
