//! Single values on the heap.
#![allow(unsafe_code)]

use crate::{Refused, Vec};

/// Space on the heap for one value, allocated before the value exists.
#[derive(Debug)]
pub struct Place<T>(Vec<T>);

impl<T> Place<T> {
    /// Allocates space for one value.
    ///
    /// # Errors
    /// The allocation was refused.
    pub fn new() -> Result<Self, Refused> {
        let mut one = Vec::new();
        one.try_reserve_exact(1)?;
        Ok(Self(one))
    }

    /// Moves the value into the space.
    #[must_use]
    pub fn fill(self, value: T) -> Box<T> {
        let mut one = self.0.into_inner();
        one.push(value);
        let one = Box::into_raw(one.into_boxed_slice()).cast::<T>();
        // SAFETY: the pointer comes from a boxed slice of exactly one `T`, whose space was reserved. A slice of
        // length one has the layout of its element. The box was given up above.
        unsafe { Box::from_raw(one) }
    }
}

/// Moves a value to the heap.
///
/// # Errors
/// The allocation was refused.
pub fn boxed<T>(value: T) -> Result<Box<T>, Refused> {
    Place::new().map(|place| place.fill(value))
}

/// Moves a value to the heap and never frees it.
///
/// # Errors
/// The allocation was refused.
pub fn leaked<T>(value: T) -> Result<&'static mut T, Refused> {
    boxed(value).map(|value| Box::leak(value))
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_value_is_held_and_dropped() {
        let shared = std::rc::Rc::new(());
        let held = super::boxed((1_u64, std::rc::Rc::clone(&shared), 2_u8)).unwrap();
        assert_eq!((held.0, held.2), (1, 2));
        drop(held);
        assert_eq!(std::rc::Rc::strong_count(&shared), 1);
        assert_eq!(*super::boxed(()).unwrap(), ());
    }
}
