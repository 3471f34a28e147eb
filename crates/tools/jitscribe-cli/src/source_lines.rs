//! The command-line options for the sources of generated code.

use std::path::PathBuf;

use jitscribe_inject::SourceOptions;

/// Where to look for the sources of generated code.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SourceLineArgs {
    /// A folder with source files, to find those that a runtime names without a path or with that of another machine
    #[arg(long, value_name = "DIR")]
    pub source_dir: Vec<PathBuf>,
    /// A folder with source maps SCRIPT.map, for scripts that do not contain or name theirs
    #[arg(long, value_name = "DIR")]
    pub source_map: Vec<PathBuf>,
    /// Show the lines of scripts as they ran, also if they have source maps
    #[arg(long, conflicts_with = "source_map")]
    pub no_source_maps: bool,
}

impl From<&SourceLineArgs> for SourceOptions {
    fn from(args: &SourceLineArgs) -> Self {
        Self {
            use_maps: !args.no_source_maps,
            map_folders: args.source_map.clone(),
            folders: args.source_dir.clone(),
            deno_cache: deno_cache(),
        }
    }
}

/// Where deno keeps what it compiles (deno's documentation, "DENO_DIR").
fn deno_cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = || match variable("XDG_CACHE_HOME") {
        Some(caches) => Some(PathBuf::from(caches)),
        None => Some(PathBuf::from(variable("HOME")?).join(".cache")),
    };
    match variable("DENO_DIR") {
        Some(cache) => Some(cache.into()),
        None => Some(folder()?.join("deno")),
    }
}
