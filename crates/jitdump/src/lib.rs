//! The jitdump format: reader, writer and checker.
