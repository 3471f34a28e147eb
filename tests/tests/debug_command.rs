//! `jitscribe debug`.
