//! Locations: an address with all calls that were inlined there, which pprof and OTLP have in place of frames.

use profile::{Frame, FrameId, Profile, StackId};

use crate::rows::Rows;

/// The locations of a profile.
#[derive(Debug)]
pub struct Locations {
    /// Of each stack: the location of its innermost frame, and the stack of the caller of the location's outermost function.
    of_stack: Vec<(u32, Option<StackId>)>,
    /// The innermost frame of each location, and the location without it.
    rows: Rows<(FrameId, Option<u32>)>,
}

fn is_inlined_into(frame: &Frame, outer: &Frame) -> bool {
    let place = |frame: &Frame| (frame.code, frame.module, frame.address);
    frame.is_inlined()
        && frame.depth.checked_sub(1) == Some(outer.depth)
        && place(frame) == place(outer)
}

impl Locations {
    /// Of all stacks.
    pub fn of(profile: &Profile) -> Self {
        let mut locations = Self { of_stack: Vec::new(), rows: Rows::default() };
        for stack in profile.stacks() {
            let frame = profile.frame(stack.frame);
            let outer = stack.parent.filter(|&parent| {
                is_inlined_into(frame, profile.frame(profile.stack(parent).frame))
            });
            // A caller comes before what it called.
            let outer = outer.and_then(|outer| locations.of_stack.get(outer.index()).copied());
            let (outer, caller) = match outer {
                Some((outer, caller)) => (Some(outer), caller),
                None => (None, stack.parent),
            };
            let number = locations.rows.number((stack.frame, outer));
            locations.of_stack.push((number, caller));
        }
        locations
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.rows().len()
    }

    /// The locations of a stack, the innermost first.
    pub fn of_stack(&self, stack: StackId) -> impl Iterator<Item = u32> + '_ {
        let mut next = Some(stack);
        std::iter::from_fn(move || {
            let &(location, caller) = self.of_stack.get(next?.index())?;
            next = caller;
            Some(location)
        })
    }

    /// The frames of a location, the innermost first.
    pub fn frames<'p>(
        &self,
        profile: &'p Profile,
        location: u32,
    ) -> impl Iterator<Item = &'p Frame> {
        let mut next = Some(location);
        std::iter::from_fn(move || {
            let &(frame, outer) = self.rows.rows().get(next? as usize)?;
            next = outer;
            Some(profile.frame(frame))
        })
    }
}
