//! What the end-to-end tests share: running the real tools, comparing what they print.
