//! Who may ask about whose processes.

/// The user at the other end of a connection, as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The user's id.
    pub user: u32,
    /// Whether this user may ask about all processes: root, the user of the agent, and those that its options name.
    pub sees_all: bool,
}

impl Peer {
    /// Whether the peer may know about a process of `owner`.
    ///
    /// A user learns about code of the own processes what `/proc` would tell anyway. A process that has more rights than its
    /// user belongs to root in `/proc`, and here too.
    #[must_use]
    pub fn may_see(self, owner: u32) -> bool {
        self.sees_all || self.user == owner
    }
}
