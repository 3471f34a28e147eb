//! Which fields of the messages refer to rows of tables: `opentelemetry/proto/profiles/v1development/profiles.proto` 1.10, and pprof's `profile.proto`.

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// Nothing that refers to a table.
    Plain,
    /// The number of a row, or several.
    Row(Table),
    /// A message.
    Message(&'static Schema),
}

/// A table of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Stacks,
    Locations,
    Mappings,
    Functions,
    Links,
    Attributes,
    Strings,
}

impl Table {
    /// As errors name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stacks => "stacks",
            Self::Locations => "locations",
            Self::Mappings => "mappings",
            Self::Functions => "functions",
            Self::Links => "links",
            Self::Attributes => "attributes",
            Self::Strings => "strings",
        }
    }
}

/// The fields of a message.
#[derive(Debug)]
pub(super) struct Schema {
    /// As errors name it.
    pub name: &'static str,
    fields: &'static [(u32, Role)],
}

impl Schema {
    /// What a field holds, if it is known.
    pub fn role(&self, number: u32) -> Option<Role> {
        self.fields.iter().find(|(it, _)| *it == number).map(|(_, role)| *role)
    }
}

const PLAIN: Role = Role::Plain;

const fn row(table: Table) -> Role {
    Role::Row(table)
}

macro_rules! schemas {
    ($($(#[$doc:meta])* $constant:ident = $name:literal { $($number:literal: $role:expr),* $(,)? })*) => {
        $($(#[$doc])* pub(in crate::divide) static $constant: Schema =
            Schema { name: $name, fields: &[$(($number, $role)),*] };)*
    };
}

/// The messages of OpenTelemetry.
pub(super) mod otlp {
    use super::Role::Message;
    use super::Table::{Attributes, Functions, Links, Locations, Mappings, Stacks, Strings};
    use super::{PLAIN, Schema, row};

    schemas! {
        RESOURCE_PROFILES = "ResourceProfiles" { 1: Message(&RESOURCE), 3: PLAIN }
        SCOPE_PROFILES = "ScopeProfiles" { 1: Message(&SCOPE), 3: PLAIN }
        /// Without the samples and the ID.
        PROFILE = "Profile" {
            1: Message(&VALUE_TYPE), 3: PLAIN, 4: PLAIN, 5: Message(&VALUE_TYPE), 6: PLAIN, 8: PLAIN,
            11: row(Attributes),
        }
        SAMPLE = "Sample" { 1: row(Stacks), 2: row(Attributes), 3: row(Links), 4: PLAIN, 5: PLAIN }
        VALUE_TYPE = "ValueType" { 1: row(Strings), 2: row(Strings) }
        STACK = "Stack" { 1: row(Locations) }
        LOCATION = "Location" { 1: row(Mappings), 2: PLAIN, 3: Message(&LINE), 4: row(Attributes) }
        LINE = "Line" { 1: row(Functions), 2: PLAIN, 3: PLAIN }
        FUNCTION = "Function" { 1: row(Strings), 2: row(Strings), 3: row(Strings), 4: PLAIN }
        MAPPING = "Mapping" { 1: PLAIN, 2: PLAIN, 3: PLAIN, 4: row(Strings), 5: row(Attributes) }
        LINK = "Link" { 1: PLAIN, 2: PLAIN }
        ATTRIBUTE = "KeyValueAndUnit" { 1: row(Strings), 2: Message(&ANY), 3: row(Strings) }
        RESOURCE = "Resource" { 1: Message(&KEY_VALUE), 2: PLAIN, 3: PLAIN }
        SCOPE = "InstrumentationScope" { 1: PLAIN, 2: PLAIN, 3: Message(&KEY_VALUE), 4: PLAIN }
        KEY_VALUE = "KeyValue" { 1: PLAIN, 2: Message(&ANY), 3: row(Strings) }
        ANY = "AnyValue" {
            1: PLAIN, 2: PLAIN, 3: PLAIN, 4: PLAIN, 5: Message(&ARRAY), 6: Message(&LIST), 7: PLAIN, 8: row(Strings),
        }
        ARRAY = "ArrayValue" { 1: Message(&ANY) }
        LIST = "KeyValueList" { 1: Message(&KEY_VALUE) }
    }
}

/// The messages of pprof. The own number of a row is one that refers to its table.
pub(super) mod pprof {
    use super::Role::Message;
    use super::Table::{Functions, Locations, Mappings, Strings};
    use super::{PLAIN, Schema, row};

    schemas! {
        /// Without samples and tables.
        PROFILE = "Profile" {
            1: Message(&VALUE_TYPE), 7: row(Strings), 8: row(Strings), 9: PLAIN, 10: PLAIN, 11: Message(&VALUE_TYPE),
            12: PLAIN, 13: row(Strings), 14: row(Strings), 15: row(Strings),
        }
        SAMPLE = "Sample" { 1: row(Locations), 2: PLAIN, 3: Message(&LABEL) }
        LABEL = "Label" { 1: row(Strings), 2: row(Strings), 3: PLAIN, 4: row(Strings) }
        VALUE_TYPE = "ValueType" { 1: row(Strings), 2: row(Strings) }
        MAPPING = "Mapping" {
            1: row(Mappings), 2: PLAIN, 3: PLAIN, 4: PLAIN, 5: row(Strings), 6: row(Strings), 7: PLAIN, 8: PLAIN, 9: PLAIN,
            10: PLAIN,
        }
        LOCATION = "Location" {
            1: row(Locations), 2: row(Mappings), 3: PLAIN, 4: Message(&LINE), 5: PLAIN,
        }
        LINE = "Line" { 1: row(Functions), 2: PLAIN, 3: PLAIN }
        FUNCTION = "Function" { 1: row(Functions), 2: row(Strings), 3: row(Strings), 4: row(Strings), 5: PLAIN }
    }
}
