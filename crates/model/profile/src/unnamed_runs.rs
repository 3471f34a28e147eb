//! Runs of equal frames without a name.

use crate::function::FunctionKind;
use crate::id::StackId;
use crate::profile::Profile;

/// How often a function without a name repeats itself in stacks. Such a function stands for all code of a module, or for all unknown code, so that one
/// behind the other says nothing but how many they are: `[unknown]` 127 times. Views that merge stacks show a run of them as one frame with this number.
/// Functions with a name are no runs: they call themselves.
#[derive(Clone, Debug, Default)]
pub struct UnnamedRuns(Vec<u32>);

impl UnnamedRuns {
    /// Of all stacks of a profile.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let mut lengths: Vec<u32> = Vec::with_capacity(profile.stacks().len());
        for stack in profile.stacks() {
            let function = profile.frame(stack.frame).function;
            let is_unnamed = profile.function(function).kind == FunctionKind::Unknown;
            let is_same = |parent: &StackId| {
                is_unnamed && profile.frame(profile.stack(*parent).frame).function == function
            };
            // A caller has a smaller number.
            let before = stack.parent.filter(is_same).and_then(|it| lengths.get(it.index()));
            lengths.push(before.map_or(1, |before| before.saturating_add(1)));
        }
        Self(lengths)
    }

    /// The number of frames from the innermost one of a stack to the outermost one of its run; 1 for a frame that continues none.
    #[must_use]
    pub fn length(&self, stack: StackId) -> u32 {
        self.0.get(stack.index()).copied().unwrap_or(1)
    }

    /// Whether the innermost frame of a stack is the same function without a name as its caller.
    #[must_use]
    pub fn continues(&self, stack: StackId) -> bool {
        self.length(stack) > 1
    }

    /// The lengths by number of the stack.
    #[must_use]
    pub fn lengths(&self) -> &[u32] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Builder, CallTree, Count, Direction, Frame, Function, NodeId, SampleRow, SampledStack,
        Totals,
    };

    /// A profile with a sample of each of these stacks of functions, the outermost first. Functions in brackets have no name.
    fn profile(stacks: &[&[&str]]) -> Profile {
        let mut builder = Builder::new();
        let event = builder.event(b"cycles");
        let process = builder.process(1, b"app");
        let thread = builder.thread(process, 1, b"app");
        for (time, frames) in (0..).zip(stacks) {
            let mut stack = None;
            for (address, name) in (0..).zip(*frames) {
                let kind = match name.starts_with('[') {
                    true => FunctionKind::Unknown,
                    false => FunctionKind::Jitted,
                };
                let name = builder.string(name.as_bytes());
                let mut frame = Frame::new(builder.function(Function::new(name, kind)));
                frame.address = address;
                let frame = builder.frame(frame);
                stack = Some(builder.stack(stack, frame));
            }
            let stack = stack.expect("a frame");
            builder.sample(SampleRow { time, thread, event, weight: 1, stack });
        }
        builder.finish()
    }

    /// Each path of a tree with the number of repetitions, own samples and all.
    fn paths(profile: &Profile, direction: Direction) -> Vec<(String, u32, u64, u64)> {
        let tree = CallTree::of(profile, profile.samples().iter(), direction);
        let mut pending: Vec<(NodeId, String)> =
            tree.roots().iter().rev().map(|id| (*id, String::new())).collect();
        let mut paths = Vec::new();
        while let Some((id, above)) = pending.pop() {
            let node = tree.node(id).expect("a node");
            let name = String::from_utf8_lossy(profile.function_name(node.function));
            let path = format!("{above}/{name}");
            let Count { own, total, .. } = node.count;
            pending.extend(tree.children(id).iter().rev().map(|id| (*id, path.clone())));
            paths.push((path, node.repeated, own, total));
        }
        paths
    }

    #[test]
    fn runs_of_frames_without_a_name_are_one_node() {
        let profile = profile(&[
            &["main", "[a]", "[a]", "[a]", "f"],
            &["main", "[a]", "[a]", "g"],
            &["main", "[a]", "[a]", "[a]", "f"],
            &["main", "[a]", "[a]"],
            &["main", "[a]", "[b]", "[a]"],
        ]);
        let path = |path: &str, repeated, own, total| (path.to_owned(), repeated, own, total);
        assert_eq!(
            paths(&profile, Direction::Callees),
            [
                path("/main", 1, 0, 5),
                path("/main/[a]", 3, 1, 5),
                path("/main/[a]/f", 1, 2, 2),
                path("/main/[a]/[b]", 1, 0, 1),
                path("/main/[a]/[b]/[a]", 1, 1, 1),
                path("/main/[a]/g", 1, 1, 1),
            ]
        );
        let callers = paths(&profile, Direction::Callers);
        for expected in [
            path("/f", 1, 2, 2),
            path("/f/[a]", 3, 0, 2),
            path("/f/[a]/main", 1, 0, 2),
            path("/g/[a]", 2, 0, 1),
            path("/g/[a]/main", 1, 0, 1),
            path("/[a]", 2, 2, 2),
            path("/[a]/main", 1, 0, 1),
            path("/[a]/[b]/[a]/main", 1, 0, 1),
        ] {
            assert!(callers.contains(&expected), "{expected:?} in {callers:?}");
        }
        assert_eq!(callers.len(), 11, "{callers:?}");
    }

    #[test]
    fn named_functions_that_call_themselves_stay() {
        let profile = profile(&[&["f", "f", "f"]]);
        let found = paths(&profile, Direction::Callees);
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|(_, repeated, ..)| *repeated == 1));
        let runs = UnnamedRuns::of(&profile);
        assert_eq!(runs.lengths(), [1, 1, 1]);
    }

    #[test]
    fn numbers_of_functions_stay() {
        let profile = profile(&[&["[a]", "[a]", "f"], &["[a]", "[a]"]]);
        let totals =
            Totals::of_stacks(&profile, SampledStack::all(&profile, profile.samples().iter()));
        let of_a = totals.of_function(profile.function_ids().next().expect("a function"));
        let tree = CallTree::of(&profile, profile.samples().iter(), Direction::Callees);
        let root = tree.node(tree.roots()[0]).expect("a node");
        assert_eq!((root.count.own, root.count.total), (of_a.own, of_a.total));
    }
}
