//! The queries of `sql/`, which other engines answer, too.

use crate::error::{Error, Result};

/// The functions of runtimes that cost most.
pub const TOP: &str = include_str!("../sql/top.sql");
/// The functions whose share changed most between two versions.
pub const REGRESSIONS: &str = include_str!("../sql/regressions.sql");
/// How many samples each host has in each function, in two versions.
pub const BY_HOST: &str = include_str!("../sql/by_host.sql");
/// The functions that are compiled again and again.
pub const CHURN: &str = include_str!("../sql/churn.sql");
/// How many samples have a name.
pub const COVERAGE: &str = include_str!("../sql/coverage.sql");

/// The line of queries that only answer the first rows.
const LIMIT: &str = "LIMIT 50";
/// The deployments that a query about two versions compares.
const DEPLOYMENTS: &str =
    "SELECT 'shop' AS service, '1.0' AS version_before, '1.1' AS version_after";

/// The query, with all its rows or with `most` of them.
pub fn limited(sql: &str, most: Option<usize>) -> String {
    match most {
        Some(most) => sql.replace(LIMIT, &format!("LIMIT {most}")).trim_end().into(),
        None => sql.replace(LIMIT, ""),
    }
}

/// Two versions of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployments {
    /// The service.
    pub service: String,
    /// The versions: before and after.
    pub versions: [String; 2],
}

impl Deployments {
    /// A query about these.
    pub fn asked(&self, sql: &str) -> String {
        let [before, after] = self.versions.each_ref().map(|version| literal(version));
        let service = literal(&self.service);
        let asked = format!(
            "SELECT {service} AS service, {before} AS version_before, {after} AS version_after"
        );
        sql.replace(DEPLOYMENTS, &asked)
    }

    /// What is chosen of the services and versions that there are, in the order of their first samples. What is not said has to be clear.
    pub fn choose(
        service: Option<&str>,
        versions: [Option<&str>; 2],
        there: &[(String, String)],
    ) -> Result<Self> {
        let mut services: Vec<&str> = there.iter().map(|(service, _)| service.as_str()).collect();
        services.sort_unstable();
        services.dedup();
        let service = match (service, services.as_slice()) {
            (Some(service), _) if services.contains(&service) => service,
            (None, [service]) => service,
            (Some(service), _) => {
                return Err(Error::Usage(format!(
                    "the service {service} has no samples: there are {}",
                    services.join(", ")
                )));
            }
            (None, []) => return Err(Error::Usage("there are no samples to compare".into())),
            (None, _) => {
                return Err(Error::Usage(format!(
                    "say which service to compare with --service: {}",
                    services.join(", ")
                )));
            }
        };
        let of_service = there.iter().filter(|(of, _)| of == service);
        let known: Vec<&str> = of_service.map(|(_, version)| version.as_str()).collect();
        let versions = match (versions, known.as_slice()) {
            ([Some(before), Some(after)], _) => [before, after],
            ([None, None], [before, after]) => [*before, *after],
            _ => {
                return Err(Error::Usage(format!(
                    "say which versions of {service} to compare with --before and --after: {}",
                    known.join(", ")
                )));
            }
        };
        if let Some(version) = versions.iter().find(|version| !known.contains(*version)) {
            return Err(Error::Usage(format!(
                "{service} has no samples of the version {version}: there are {}",
                known.join(", ")
            )));
        }
        let [before, after] = versions;
        if before == after {
            return Err(Error::Usage("--before and --after are the same version".into()));
        }
        Ok(Self { service: service.into(), versions: versions.map(Into::into) })
    }
}

/// A text in SQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_what_is_replaced() {
        for sql in [TOP, REGRESSIONS, CHURN] {
            assert!(sql.trim_end().ends_with(LIMIT));
            assert!(!limited(sql, None).contains("LIMIT"));
            assert!(limited(sql, Some(7)).ends_with("\nLIMIT 7"));
        }
        for sql in [REGRESSIONS, BY_HOST] {
            let deployments = Deployments {
                service: "it's".into(),
                versions: ["1".into(), "2' OR 'a' = 'a".into()],
            };
            let asked = deployments.asked(sql);
            assert!(asked.contains(
                "SELECT 'it''s' AS service, '1' AS version_before, '2'' OR ''a'' = ''a' AS version_after"
            ));
        }
    }

    #[test]
    fn what_is_clear_need_not_be_said() {
        let there = |rows: &[(&str, &str)]| -> Vec<(String, String)> {
            rows.iter().map(|(service, version)| ((*service).into(), (*version).into())).collect()
        };
        let two = there(&[("shop", "1.0"), ("shop", "1.1")]);
        let chosen = Deployments::choose(None, [None, None], &two).expect("clear");
        assert_eq!(chosen.versions, ["1.0", "1.1"]);
        let more = there(&[("shop", "1.0"), ("cart", "7"), ("shop", "1.1"), ("shop", "1.2")]);
        let refused = |service, versions| {
            Deployments::choose(service, versions, &more).expect_err("not clear").to_string()
        };
        assert!(refused(None, [None, None]).contains("cart, shop"));
        assert!(refused(Some("web"), [None, None]).contains("no samples"));
        assert!(refused(Some("shop"), [None, None]).contains("1.0, 1.1, 1.2"));
        assert!(refused(Some("shop"), [Some("1.0"), Some("2")]).contains("version 2"));
        assert!(refused(Some("shop"), [Some("1.0"), Some("1.0")]).contains("same"));
        let chosen = Deployments::choose(Some("shop"), [Some("1.0"), Some("1.2")], &more);
        assert_eq!(chosen.expect("said").versions, ["1.0", "1.2"]);
        assert!(Deployments::choose(None, [None, None], &[]).is_err());
    }
}
