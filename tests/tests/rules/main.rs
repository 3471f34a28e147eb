//! Rules of the repository: dependencies, imports, and that the documents work as written.

mod dependencies;
mod imports;
mod security;
