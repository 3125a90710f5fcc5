//! Parts of data sets, and where their files come from.

use crate::download::Download;
use sampan_core::{Error, Result};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Which part of a data set: Paddle's `mode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Split {
    /// To learn from.
    Train,
    /// To judge by.
    Test,
    /// To choose settings by; not every data set has it.
    Valid,
}

impl FromStr for Split {
    type Err = Error;

    /// ```
    /// # use sampan_data::Split;
    /// assert_eq!("Train".parse::<Split>()?, Split::Train);
    /// assert!("all".parse::<Split>().is_err());
    /// # Ok::<(), sampan_core::Error>(())
    /// ```
    fn from_str(mode: &str) -> Result<Split> {
        match mode.to_lowercase().as_str() {
            "train" => Ok(Split::Train),
            "test" => Ok(Split::Test),
            "valid" => Ok(Split::Valid),
            _ => Err(Error::invalid("mode must be 'train', 'test' or 'valid'").received(format!("{mode:?}"))),
        }
    }
}

/// What a data set without a validation part says to one who asks for it.
pub(crate) fn no_valid_part(name: &str) -> Error {
    Error::invalid("mode must be 'train' or 'test'").received("'valid'").in_op(name).hint("cut one off by random_split")
}

/// A file that a data set needs, and where it is found.
pub(crate) struct Remote {
    pub folder: &'static str,
    pub url: &'static str,
    pub md5: &'static str,
}

impl Remote {
    /// Its path in the cache, or in `root`, after a download if need be.
    pub fn fetch(&self, root: Option<&Path>) -> Result<PathBuf> {
        let folder = match root {
            Some(root) => root.to_path_buf(),
            None => crate::download::data_home().join(self.folder),
        };
        Download::new([self.url]).md5(self.md5).folder(folder).fetch()
    }
}
