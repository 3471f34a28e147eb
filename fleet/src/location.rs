//! Where the tables are: a folder, or a prefix in a bucket.

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::datasource::listing::ListingTableUrl;
use datafusion::prelude::SessionContext;
use printable::Escaped;
use url::Url;

use crate::error::{Error, Result};

/// Where the tables are.
#[derive(Clone, Debug)]
pub enum Location {
    /// A folder.
    Folder(PathBuf),
    /// A prefix in a bucket.
    Bucket(Url),
}

impl Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => Escaped(path.as_os_str().as_encoded_bytes()).fmt(f),
            Self::Bucket(url) => Escaped(url.as_str().as_bytes()).fmt(f),
        }
    }
}

impl Location {
    /// A path, or a URL.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        if !text.contains("://") {
            return Ok(Self::Folder(text.into()));
        }
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        match url.scheme() {
            "file" => match url.to_file_path() {
                Ok(path) => Ok(Self::Folder(path)),
                Err(()) => Err("a file: URL of another host".into()),
            },
            "s3" if cfg!(feature = "s3") => Ok(Self::Bucket(url)),
            scheme => Err(format!(
                "{scheme}: cannot be read; give a folder or s3://BUCKET/PREFIX, or copy the tables into a folder"
            )),
        }
    }

    /// The folder of one of the tables.
    pub fn table(&self, name: &str) -> Result<ListingTableUrl> {
        let url = match self {
            Self::Folder(folder) => {
                let folder = std::path::absolute(folder).map_err(Error::file(folder))?.join(name);
                if !folder.is_dir() {
                    return Err(self.no_table(name));
                }
                Url::from_directory_path(&folder)
                    .map_err(|()| Error::Tables(format!("{self}: no path of a file")))?
            }
            Self::Bucket(prefix) => {
                let mut url = prefix.clone();
                if let Ok(mut path) = url.path_segments_mut() {
                    path.pop_if_empty().push(name).push("");
                }
                url
            }
        };
        // Without a pattern: a `*` in the path of a folder is none.
        ListingTableUrl::try_new(url, None).map_err(Error::engine(self))
    }

    /// The error that a table is not there.
    pub fn no_table(&self, name: &str) -> Error {
        Error::Tables(format!(
            "{self} has no table {name}: write the tables with `jitscribe export --parquet {self}`"
        ))
    }

    /// Tells the engine how to read a bucket: from `AWS_ACCESS_KEY_ID` and the other variables that AWS's own command reads.
    #[cfg(feature = "s3")]
    pub fn register(&self, context: &SessionContext) -> Result<()> {
        let Self::Bucket(url) = self else { return Ok(()) };
        let bucket = object_store::aws::AmazonS3Builder::from_env()
            .with_url(url.as_str())
            .build()
            .map_err(|error| Error::Tables(format!("{self}: {error}")))?;
        context.register_object_store(url, Arc::new(bucket));
        Ok(())
    }

    /// There are no buckets without the feature `s3`.
    #[cfg(not(feature = "s3"))]
    pub fn register(&self, _: &SessionContext) -> Result<()> {
        Ok(())
    }
}
