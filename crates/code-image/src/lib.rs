//! Jitted code as one object file: text at mirrored addresses, symbols, DWARF lines, CFI, build-id.
