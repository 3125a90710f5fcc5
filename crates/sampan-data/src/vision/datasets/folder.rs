//! Files in folders as data sets.

use super::ImageFn;
use crate::dataset::{Dataset, Sample, check_index};
use crate::files::file_error;
use crate::vision::image;
use crate::vision::transforms::Transform;
use sampan_core::error::Kind;
use sampan_core::{Error, Result, Tensor};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of image files end so unless something else is said.
pub const IMG_EXTENSIONS: [&str; 9] = [".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"];

type LoadFn = Arc<dyn Fn(&Path) -> Result<Tensor> + Send + Sync>;
type IsValidFn = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// The arguments of Paddle's `DatasetFolder` and `ImageFolder`.
///
/// ```
/// # use sampan_core::Tensor;
/// # use sampan_data::{Dataset, vision::datasets::FolderBuilder};
/// # let root = std::env::temp_dir().join(format!("sampan-folder-{}", std::process::id()));
/// # std::fs::create_dir_all(root.join("red"))?;
/// std::fs::write(root.join("red/1.ppm"), b"P6 1 1 255 \xff\x00\x00")?;
/// let data = FolderBuilder::new(&root).extensions([".ppm"]).transform(|image: &Tensor| Ok(image / 255)).dataset_folder()?;
/// assert_eq!(data.classes(), ["red"]);
/// assert_eq!(data.get(0)?[0].to_f64_vec(), [1.0, 0.0, 0.0]);
/// # std::fs::remove_dir_all(&root)?;
/// # Ok::<(), sampan_core::Error>(())
/// ```
#[must_use = "call dataset_folder() or image_folder()"]
pub struct FolderBuilder {
    root: PathBuf,
    loader: Option<LoadFn>,
    extensions: Option<Vec<String>>,
    transform: Option<ImageFn>,
    is_valid_file: Option<IsValidFn>,
}

impl FolderBuilder {
    /// Files below `root`.
    pub fn new(root: impl Into<PathBuf>) -> FolderBuilder {
        FolderBuilder { root: root.into(), loader: None, extensions: None, transform: None, is_valid_file: None }
    }

    /// Reads a file, instead of [`image::load`].
    pub fn loader(mut self, load: impl Fn(&Path) -> Result<Tensor> + Send + Sync + 'static) -> Self {
        self.loader = Some(Arc::new(load));
        self
    }

    /// Which endings count, instead of [`IMG_EXTENSIONS`]; small and large letters are the same.
    pub fn extensions<S: AsRef<str>>(mut self, extensions: impl IntoIterator<Item = S>) -> Self {
        self.extensions = Some(extensions.into_iter().map(|e| e.as_ref().to_lowercase()).collect());
        self
    }

    /// Changes every picture when it is read: one of the [`transforms`](crate::vision::transforms), or a function.
    pub fn transform(mut self, transform: impl Transform + 'static) -> Self {
        self.transform = Some(Arc::new(transform));
        self
    }

    /// Which files count, instead of by their endings.
    pub fn is_valid_file(mut self, is_valid: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        self.is_valid_file = Some(Arc::new(is_valid));
        self
    }

    /// Each folder in `root` is a class; its files, at any depth, are the samples.
    pub fn dataset_folder(self) -> Result<DatasetFolder> {
        let name = "DatasetFolder";
        let valid = self.valid(name)?;
        let classes: Vec<String> = list(&self.root)?
            .into_iter()
            .filter(|path| path.is_dir())
            .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .collect();
        let mut samples = Vec::new();
        for (target, class) in classes.iter().enumerate() {
            let files = walk(&self.root.join(class), &*valid)?;
            samples.extend(files.into_iter().map(|path| (path, target as i64)));
        }
        if samples.is_empty() {
            let found = format!("{} folders: {:?}", classes.len(), &classes[..classes.len().min(8)]);
            return Err(self.nothing(name, "files in the folders of", &found));
        }
        let class_to_idx = classes.iter().cloned().zip(0..).collect();
        let files = Files { loader: self.loader, transform: self.transform };
        Ok(DatasetFolder { files, classes, class_to_idx, samples })
    }

    /// All files below `root` are samples, without labels.
    pub fn image_folder(self) -> Result<ImageFolder> {
        let name = "ImageFolder";
        let samples = walk(&self.root, &*self.valid(name)?)?;
        if samples.is_empty() {
            return Err(self.nothing(name, "files in", "none of them"));
        }
        Ok(ImageFolder { files: Files { loader: self.loader, transform: self.transform }, samples })
    }

    fn valid(&self, name: &str) -> Result<IsValidFn> {
        match (&self.extensions, &self.is_valid_file) {
            (Some(_), Some(_)) => Err(Error::invalid("set extensions or is_valid_file, not both").in_op(name)),
            (_, Some(is_valid)) => Ok(is_valid.clone()),
            (extensions, None) => {
                let endings = extensions.clone().unwrap_or_else(|| IMG_EXTENSIONS.map(String::from).to_vec());
                Ok(Arc::new(move |path: &Path| {
                    let name = path.to_string_lossy().to_lowercase();
                    endings.iter().any(|e| name.ends_with(e.as_str()))
                }))
            }
        }
    }

    fn nothing(&self, name: &str, what: &str, found: &str) -> Error {
        let wanted = match &self.extensions {
            Some(extensions) => extensions.join(", "),
            None if self.is_valid_file.is_some() => "what is_valid_file accepts".into(),
            None => IMG_EXTENSIONS.join(", "),
        };
        Error::new(Kind::NotFound, format!("found no {what} {} that end in {wanted}", self.root.display()))
            .received(found)
            .hint("DatasetFolder wants root/class/file, ImageFolder root/file")
            .in_op(name)
    }
}

/// What a folder holds, sorted by name.
fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = || std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut paths = read().map_err(|e| file_error(folder, e))?;
    paths.sort();
    Ok(paths)
}

/// The files below a folder that count: those of a folder before those of its folders. Links are followed, but not in
/// circles.
fn walk(root: &Path, valid: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut folders = vec![(root.to_path_buf(), Vec::new())];
    let mut found = Vec::new();
    while let Some((folder, mut above)) = folders.pop() {
        let real = folder.canonicalize().map_err(|e| file_error(&folder, e))?;
        if above.contains(&real) {
            continue;
        }
        above.push(real);
        let (inner, files): (Vec<_>, Vec<_>) = list(&folder)?.into_iter().partition(|path| path.is_dir());
        found.extend(files.into_iter().filter(|path| valid(path)));
        folders.extend(inner.into_iter().rev().map(|path| (path, above.clone())));
    }
    Ok(found)
}

/// How files are read.
struct Files {
    loader: Option<LoadFn>,
    transform: Option<ImageFn>,
}

impl Files {
    fn load(&self, path: &Path) -> Result<Tensor> {
        let read = match &self.loader {
            Some(load) => load(path).map_err(|e| e.in_layer(path.display().to_string()))?,
            None => image::load(path)?,
        };
        match &self.transform {
            Some(transform) => transform.apply(&read),
            None => Ok(read),
        }
    }
}

/// Samples in one folder for each class: `root/cat/1.png`, `root/dog/2.png`. A sample is what the file holds and the
/// number of its class; classes are numbered in the order of their names.
///
/// ```no_run
/// # use sampan_data::DatasetFolder;
/// let pets = DatasetFolder::new("pets")?;
/// println!("{:?}", pets.classes());
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct DatasetFolder {
    files: Files,
    classes: Vec<String>,
    class_to_idx: BTreeMap<String, i64>,
    samples: Vec<(PathBuf, i64)>,
}

impl DatasetFolder {
    /// Images in the folders of `root`; see [`FolderBuilder`] for the rest.
    pub fn new(root: impl Into<PathBuf>) -> Result<DatasetFolder> {
        FolderBuilder::new(root).dataset_folder()
    }

    /// The names of the classes, sorted.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The number of each class.
    pub fn class_to_idx(&self) -> &BTreeMap<String, i64> {
        &self.class_to_idx
    }

    /// The files and their classes.
    pub fn samples(&self) -> &[(PathBuf, i64)] {
        &self.samples
    }

    /// The classes of the files.
    pub fn targets(&self) -> Vec<i64> {
        self.samples.iter().map(|(_, target)| *target).collect()
    }
}

impl Dataset for DatasetFolder {
    fn len(&self) -> usize {
        self.samples.len()
    }
    fn get(&self, index: usize) -> Result<Sample> {
        check_index(self.name(), index, self.len())?;
        let (path, target) = &self.samples[index];
        Ok(vec![self.files.load(path)?, Tensor::new(*target)])
    }
}

/// All files below a folder, without labels. A sample is what the file holds.
///
/// ```no_run
/// # use sampan_data::{Dataset, ImageFolder};
/// let images = ImageFolder::new("pictures")?;
/// println!("{} in {:?}", images.get(0)?[0], images.samples()[0]);
/// # Ok::<(), sampan_core::Error>(())
/// ```
pub struct ImageFolder {
    files: Files,
    samples: Vec<PathBuf>,
}

impl ImageFolder {
    /// Images below `root`; see [`FolderBuilder`] for the rest.
    pub fn new(root: impl Into<PathBuf>) -> Result<ImageFolder> {
        FolderBuilder::new(root).image_folder()
    }

    /// The files.
    pub fn samples(&self) -> &[PathBuf] {
        &self.samples
    }
}

impl Dataset for ImageFolder {
    fn len(&self) -> usize {
        self.samples.len()
    }
    fn get(&self, index: usize) -> Result<Sample> {
        check_index(self.name(), index, self.len())?;
        Ok(vec![self.files.load(&self.samples[index])?])
    }
}
