//! The payload: `opentelemetry.proto.processcontext.v1development.ProcessContext`.

use crate::wire::Fields;
use crate::{Attribute, CodeLogs, DecodeError};

/// The payload of a context. It is decoded while it is iterated over.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a>(&'a [u8]);

/// Attributes, in the order of their bytes. It ends after the first error.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    context: Fields<'a>,
    /// The attributes of the resource that was found last.
    resource: Fields<'a>,
    is_of_resource: bool,
}

/// Field numbers.
const RESOURCE: u64 = 1;
const ATTRIBUTES: u64 = 2;
const RESOURCE_ATTRIBUTES: u64 = 1;

impl<'a> Context<'a> {
    /// The context with this payload.
    #[must_use]
    pub fn new(payload: &'a [u8]) -> Self {
        Self(payload)
    }

    /// The attributes of the resource, such as `service.name`.
    #[must_use]
    pub fn resource(&self) -> Attributes<'a> {
        Attributes {
            context: Fields::new(self.0),
            resource: Fields::default(),
            is_of_resource: true,
        }
    }

    /// The attributes that are not the resource's.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes { is_of_resource: false, ..self.resource() }
    }

    /// Where the code logs of the process are.
    #[must_use]
    pub fn code_logs(&self) -> CodeLogs<'a> {
        CodeLogs::of(self.attributes())
    }
}

impl<'a> Attributes<'a> {
    fn advance(&mut self) -> Result<Option<Attribute<'a>>, DecodeError> {
        loop {
            for field in &mut self.resource {
                if let (RESOURCE_ATTRIBUTES, wire) = field? {
                    return Attribute::parse(wire.bytes(RESOURCE_ATTRIBUTES)?).map(Some);
                }
            }
            match (self.context.next().transpose()?, self.is_of_resource) {
                (None, _) => return Ok(None),
                // There may be more than one: protobuf merges them.
                (Some((RESOURCE, wire)), true) => {
                    self.resource = Fields::new(wire.bytes(RESOURCE)?);
                }
                (Some((ATTRIBUTES, wire)), false) => {
                    return Attribute::parse(wire.bytes(ATTRIBUTES)?).map(Some);
                }
                _ => {}
            }
        }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let attribute = self.advance();
        if attribute.is_err() {
            (self.context, self.resource) = Default::default();
        }
        attribute.transpose()
    }
}
