//! The numbers by which rows of tables refer to each other.

/// The number of a row in its table.
pub trait Id: Copy {
    /// The row with this place in the table.
    fn at(place: usize) -> Self;
    /// Its place in the table.
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Its place in the table.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl Id for $name {
            fn at(place: usize) -> Self {
                // The builder refuses rows behind this number.
                Self(u32::try_from(place).unwrap_or(u32::MAX))
            }

            fn index(self) -> usize {
                self.index()
            }
        }
    )*};
}

ids! {
    /// A string in [`Strings`](crate::Strings).
    StringId;
    /// A [`Process`](crate::Process).
    ProcessId;
    /// A [`Thread`](crate::Thread).
    ThreadId;
    /// A [`Module`](crate::Module).
    ModuleId;
    /// An [`Event`](crate::Event).
    EventId;
    /// A [`Function`](crate::Function).
    FunctionId;
    /// A [`Code`](crate::Code).
    CodeId;
    /// A [`Frame`](crate::Frame).
    FrameId;
    /// A [`Stack`](crate::Stack).
    StackId;
    /// A [`Node`](crate::Node) of a call tree.
    NodeId;
}

impl StringId {
    /// The empty string, which is in each profile.
    pub const EMPTY: Self = Self(0);

    /// Whether it is the empty string, which stands for what is not known.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
