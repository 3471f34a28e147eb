//! What wasmtime compiled: a module, or a component, which is several modules in one image.

use std::ops::Range;

#[cfg(feature = "component-model")]
use wasmtime::component::Component;
use wasmtime::{Engine, Module, ModuleFunction};

/// An offset in the text, and the offset in the binary from which the code there was compiled, if any.
pub(crate) type Place = (usize, Option<u32>);

/// Something that wasmtime compiled.
pub(crate) trait Compiled {
    fn engine(&self) -> &Engine;
    fn text(&self) -> &[u8];
    /// Of all its modules.
    fn functions(&self) -> Vec<ModuleFunction>;
    fn places(&self) -> Option<Box<dyn Iterator<Item = Place> + '_>>;
    /// The memory of the ELF file with the code. It is `as_ptr_range` of a `&[u8]` that lives as long as this.
    fn image_range(&self) -> Range<*const u8>;
    /// What stands for its binary in listings of the bytecode.
    fn name(&self) -> &str;
    /// Whether other code is in the image too.
    fn shares_image(&self) -> bool;
}

impl Compiled for Module {
    fn engine(&self) -> &Engine {
        self.engine()
    }
    fn text(&self) -> &[u8] {
        self.text()
    }
    fn functions(&self) -> Vec<ModuleFunction> {
        self.functions().collect()
    }
    fn places(&self) -> Option<Box<dyn Iterator<Item = Place> + '_>> {
        self.address_map().map(|map| Box::new(map) as Box<dyn Iterator<Item = Place> + '_>)
    }
    fn image_range(&self) -> Range<*const u8> {
        self.image_range()
    }
    fn name(&self) -> &str {
        self.name().unwrap_or("wasm")
    }
    fn shares_image(&self) -> bool {
        // It may be a module of a component.
        true
    }
}

#[cfg(feature = "component-model")]
impl Compiled for Component {
    fn engine(&self) -> &Engine {
        self.engine()
    }
    fn text(&self) -> &[u8] {
        self.text()
    }
    fn functions(&self) -> Vec<ModuleFunction> {
        self.functions().collect()
    }
    fn places(&self) -> Option<Box<dyn Iterator<Item = Place> + '_>> {
        self.address_map().map(|map| Box::new(map) as Box<dyn Iterator<Item = Place> + '_>)
    }
    fn image_range(&self) -> Range<*const u8> {
        self.image_range()
    }
    fn name(&self) -> &str {
        "component"
    }
    fn shares_image(&self) -> bool {
        false
    }
}
