use crate::archives::{Folder, cifar_pixels, gzip, mat, palette_png, pickles, picture, tar};
use image::ImageFormat;
use sampan_core::{DType, Tensor};
use sampan_data::vision::datasets::FolderBuilder;
use sampan_data::vision::image::{decode, decode_labels};
use sampan_data::{
    Cifar10, Cifar100, Dataset, DatasetFolder, FashionMnist, Flowers, ImageFolder, Mnist, Split, UciHousing, Voc2012,
};

fn idx(extents: &[u32], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, extents.len() as u8];
    bytes.extend(extents.iter().flat_map(|e| e.to_be_bytes()));
    bytes.extend(data);
    bytes
}

#[test]
fn the_bundled_digits_are_whole() {
    let train = Mnist::new(Split::Train).unwrap().normalized(&[127.5], &[127.5]).unwrap();
    assert_eq!(train.len(), 60_000);
    let batch = train.batch(&[0, 1]).unwrap().unwrap();
    assert_eq!((batch[0].shape(), batch[1].shape()), (&[2, 1, 28, 28][..], &[2, 1][..]));
    assert_eq!(batch[1].to_vec::<i64>(), [5, 0]);
    assert_eq!(batch[0].to_vec::<f32>()[0], -1.0);
    let raw = Mnist::new(Split::Test).unwrap().get(0).unwrap();
    assert_eq!((raw[0].dtype(), raw[0].shape(), raw[1].shape()), (DType::UInt8, &[28, 28, 1][..], &[1][..]));
    assert!(Mnist::new(Split::Valid).is_err());
    assert!(Mnist::new(Split::Test).unwrap().normalized(&[1.0, 2.0], &[1.0]).is_err());
    assert!(Mnist::new(Split::Test).unwrap().normalized(&[1.0], &[0.0]).is_err());
}

#[test]
fn idx_files_plain_and_compressed() {
    let folder = Folder::new();
    let images = folder.write("images.gz", &gzip(&idx(&[2, 1, 2], &[1, 2, 3, 4])));
    let labels = folder.write("labels", &idx(&[2], &[7, 8]));
    let data = FashionMnist::open(&images, &labels).unwrap().with_transform(|x: &Tensor| x.try_cast(DType::Float32));
    let sample = data.get(1).unwrap();
    assert_eq!((sample[0].to_vec::<f32>(), sample[1].to_vec::<i64>()), (vec![3.0, 4.0], vec![8]));
    assert!(data.batch(&[0]).is_none(), "a transform runs on each sample");
    let said = FashionMnist::open(&images, folder.path().join("none")).err().unwrap().to_string();
    assert!(said.contains("(NotFound)") && said.contains("none"), "{said}");
    for broken in [&b""[..], &idx(&[2, 1, 2], &[1]), &idx(&[u32::MAX; 3], &[]), &gzip(&idx(&[1, 1, 1], &[1]))[..9]] {
        assert!(Mnist::parse(broken, &idx(&[2], &[7, 8])).is_err());
    }
    assert!(Mnist::parse(&idx(&[3, 1, 1], &[1, 2, 3]), &idx(&[2], &[7, 8])).is_err());
}

#[test]
fn cifar_from_every_python() {
    let folder = Folder::new();
    for (i, pickle) in pickles().into_iter().enumerate() {
        let files = [("c/batches.meta", vec![1]), ("c/data_batch_1", pickle.clone()), ("c/test_batch", pickle)];
        let path = folder.write(&format!("{i}.tar.gz"), &gzip(&tar(&files)));
        let data = Cifar10::open(&path, Split::Train).unwrap();
        assert_eq!(data.len(), 2);
        let sample = data.get(1).unwrap();
        let planar = cifar_pixels();
        let (image, pixels) = (sample[0].to_vec::<u8>(), &planar[3072..]);
        assert_eq!((sample[0].shape(), sample[1].shape()), (&[32, 32, 3][..], &[][..]));
        assert_eq!(image[..6], [pixels[0], pixels[1024], pixels[2048], pixels[1], pixels[1025], pixels[2049]]);
        assert_eq!(sample[1].to_vec::<i64>(), [9]);
        let scaled = Cifar10::open(&path, Split::Test).unwrap().normalized(&[0.0], &[1.0, 2.0, 4.0]).unwrap();
        let values = scaled.batch(&[1]).unwrap().unwrap()[0].to_vec::<f32>();
        assert_eq!(values[1025], pixels[1025] as f32 / 2.0);
    }
}

#[test]
fn cifar_binary_and_wrong_files() {
    let folder = Folder::new();
    let record = |labels: &[u8]| [labels, &cifar_pixels()[..3072]].concat();
    let files = [("b/data_batch_2.bin", record(&[4])), ("b/data_batch_1.bin", [record(&[1]), record(&[2])].concat())];
    let data = Cifar10::open(folder.write("ten.tar", &tar(&files)), Split::Train).unwrap();
    let labels: Vec<f64> = (0..3).map(|i| data.get(i).unwrap()[1].to_f64()).collect();
    assert_eq!(labels, [1.0, 2.0, 4.0], "files in the order of their names");
    let path = folder.write("hundred.tar", &tar(&[("b/train.bin", record(&[3, 77])), ("b/test.bin", record(&[3, 5]))]));
    assert_eq!(Cifar100::open(&path, Split::Train).unwrap().get(0).unwrap()[1].to_f64(), 77.0);
    assert!(Cifar100::open(&path, Split::Valid).is_err());
    let said = Cifar10::open(&path, Split::Train).err().unwrap().to_string();
    assert!(said.contains("holds no batches"), "{said}");
    let short = folder.write("short.tar", &tar(&[("b/test.bin", vec![0; 100])]));
    assert!(Cifar100::open(short, Split::Test).is_err());
}

/// Cut and changed at many places: an error or a value, never a panic.
#[test]
fn broken_files_never_panic() {
    let folder = Folder::new();
    for pickle in pickles() {
        let head = pickle.len().min(500);
        for i in (0..head).chain([pickle.len() - 1, pickle.len() - 5]) {
            let mut changed = pickle.clone();
            changed[i] ^= 0x15;
            for bytes in [changed, pickle[..i].to_vec()] {
                let path = folder.write("x.tar", &tar(&[("data_batch_1", bytes)]));
                let _ = Cifar10::open(&path, Split::Train).map(|d| d.len());
            }
        }
    }
    // Deep nesting and doubling.
    let deep = [b"\x80\x02)".to_vec(), vec![0x85; 200_000], b".".to_vec()].concat();
    let wide = [b"\x80\x02)q\x00".to_vec(), b"h\x00h\x00\x86q\x00".repeat(200), b".".to_vec()].concat();
    for bytes in [deep, wide] {
        assert!(Cifar10::open(folder.write("x.tar", &tar(&[("data_batch_1", bytes)])), Split::Train).is_err());
    }
    let matlab = mat(&[("labels", &[1, 2, 3]), ("tstid", &[1, 2, 3, 1, 2, 3])], false);
    let images = folder.write("f.tgz", &gzip(&tar(&[("jpg/image_00001.jpg", vec![1, 2, 3])])));
    for i in 100..matlab.len() {
        let mut changed = matlab.clone();
        changed[i] ^= 0xff;
        for bytes in [&changed[..], &matlab[..i]] {
            let path = folder.write("x.mat", bytes);
            let _ = Flowers::open(&images, &path, &path, Split::Train).map(|d| d.get(0).err());
        }
    }
    let png = palette_png(3, png::BitDepth::Two, &[0b00_01_10_00, 0b11_00_01_00]);
    let jpeg = picture(ImageFormat::Jpeg, 9, 9, [200, 10, 10]);
    for whole in [&png, &jpeg, &tar(&[("a", vec![1; 600])]), &gzip(&tar(&[("a", vec![1])]))] {
        for i in 0..whole.len() {
            let mut changed = whole.clone();
            changed[i] ^= 0x55;
            for bytes in [&changed[..], &whole[..i]] {
                let _ = (decode(bytes), decode_labels(bytes));
            }
            let path = folder.write("x.tar", &changed);
            let _ = (Voc2012::open(&path, Split::Train).err(), Cifar10::open(&path, Split::Test).err());
        }
    }
}

#[test]
fn images_of_every_format() {
    for format in [ImageFormat::Png, ImageFormat::Bmp, ImageFormat::Tiff, ImageFormat::Pnm, ImageFormat::WebP] {
        let image = decode(&picture(format, 3, 2, [1, 200, 30])).unwrap();
        assert_eq!(image.shape(), [2, 3, 3], "{format:?}");
        assert_eq!(image.to_vec::<u8>()[..3], [1, 200, 30], "{format:?}");
    }
    let jpeg = decode(&picture(ImageFormat::Jpeg, 8, 8, [10, 100, 200])).unwrap().to_vec::<u8>();
    assert!(jpeg.iter().zip([10, 100, 200].iter().cycle()).all(|(a, b): (&u8, &u8)| a.abs_diff(*b) < 4));
    assert!(decode(b"no image").err().unwrap().to_string().contains("not a picture"));
}

#[test]
fn labels_are_palette_numbers() {
    let two_bits = palette_png(3, png::BitDepth::Two, &[0b00_01_10_00, 0b11_00_01_00]);
    assert_eq!(decode_labels(&two_bits).unwrap().to_vec::<u8>(), [0, 1, 2, 3, 0, 1]);
    let eight = palette_png(2, png::BitDepth::Eight, &[3, 1, 0, 2]);
    assert_eq!(decode_labels(&eight).unwrap().to_vec::<u8>(), [3, 1, 0, 2]);
    assert!(decode_labels(&picture(ImageFormat::Png, 2, 2, [1, 2, 3])).is_err());
}

#[test]
fn voc_reads_from_its_archive() {
    let folder = Folder::new();
    let base = "VOCdevkit/VOC2012";
    let files = [
        (format!("{base}/ImageSets/Segmentation/trainval.txt"), b"a\nb\n\n".to_vec()),
        (format!("{base}/ImageSets/Segmentation/val.txt"), b"b\r\n".to_vec()),
        (format!("{base}/ImageSets/Segmentation/train.txt"), b"missing\n".to_vec()),
        (format!("{base}/JPEGImages/a.jpg"), picture(ImageFormat::Jpeg, 2, 1, [0, 0, 0])),
        (format!("{base}/SegmentationClass/a.png"), palette_png(2, png::BitDepth::Eight, &[1, 3])),
        (format!("{base}/JPEGImages/b.jpg"), picture(ImageFormat::Jpeg, 1, 2, [9, 9, 9])),
        (format!("{base}/SegmentationClass/b.png"), palette_png(1, png::BitDepth::Eight, &[2, 0])),
    ];
    let files: Vec<(&str, Vec<u8>)> = files.iter().map(|(n, b)| (n.as_str(), b.clone())).collect();
    let path = folder.write("voc.tar", &tar(&files));
    let data = Voc2012::open(&path, Split::Train).unwrap();
    assert_eq!(data.len(), 2);
    let sample = data.get(0).unwrap();
    assert_eq!((sample[0].shape(), sample[1].to_vec::<u8>()), (&[1, 2, 3][..], vec![1, 3]));
    let valid = Voc2012::open(&path, Split::Valid).unwrap().with_transform(|x: &Tensor| x.try_cast(DType::Float32));
    assert_eq!(valid.get(0).unwrap()[0].dtype(), DType::Float32);
    assert!(Voc2012::open(&path, Split::Test).err().unwrap().to_string().contains("missing.jpg"));
    let packed = folder.write("voc.tar.gz", &gzip(&tar(&files)));
    assert!(Voc2012::open(packed, Split::Train).err().unwrap().to_string().contains("gunzip"));
}

#[test]
fn flowers_with_matlab_labels() {
    let folder = Folder::new();
    let jpeg = |shade| picture(ImageFormat::Jpeg, 2, 2, [shade; 3]);
    let files = [("jpg/image_00001.jpg", jpeg(10)), ("jpg/image_00002.jpg", jpeg(200)), ("../evil.txt", vec![1])];
    let mut bytes = tar(&files[..2]);
    // A name that climbs out is put in by hand: the writer refuses it.
    let mut evil = tar(&[("xx/evil.jpg", vec![1])]);
    evil[..11].copy_from_slice(b"../evil.jpg");
    let sum: u32 =
        evil[..512].iter().enumerate().map(|(i, &b)| if (148..156).contains(&i) { 32 } else { b as u32 }).sum();
    evil[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    bytes.truncate(bytes.len() - 1024);
    bytes.extend(evil);
    let images = folder.write("flowers/102flowers.tgz", &gzip(&bytes));
    for compressed in [false, true] {
        let labels = folder.write("labels.mat", &mat(&[("labels", &[5, 6, 7, 8, 9, 10])], compressed));
        let parts =
            folder.write("setid.mat", &mat(&[("trnid", &[2]), ("valid", &[1]), ("tstid", &[1, 2])], compressed));
        let train = Flowers::open(&images, &labels, &parts, Split::Train).unwrap();
        let second = train.get(1).unwrap();
        assert_eq!((train.len(), second[1].to_vec::<i64>()), (2, vec![6]));
        assert!(second[0].to_vec::<u8>()[0] > 190);
        assert_eq!(Flowers::open(&images, &labels, &parts, Split::Valid).unwrap().get(0).unwrap()[1].to_f64(), 5.0);
        let outside = folder.write("bad.mat", &mat(&[("trnid", &[99])], compressed));
        let said = Flowers::open(&images, &labels, outside, Split::Test).err().unwrap().to_string();
        assert!(said.contains("image 99"), "{said}");
        assert!(Flowers::open(&images, &labels, &labels, Split::Test).err().unwrap().to_string().contains("trnid"));
    }
    assert!(!folder.path().join("evil.jpg").exists() && !folder.path().join("flowers/evil.jpg").exists());
}

#[test]
fn folders_are_classes() {
    let folder = Folder::new();
    let png = |shade| picture(ImageFormat::Png, 1, 1, [shade; 3]);
    folder.write("dog/2.PNG", &png(2));
    folder.write("cat/deep/1.png", &png(3));
    folder.write("cat/0.png", &png(1));
    folder.write("cat/notes.txt", b"hello");
    folder.write("top.png", &png(9));
    let data = DatasetFolder::new(folder.path()).unwrap();
    assert_eq!((data.classes(), data.targets()), (&["cat".to_string(), "dog".to_string()][..], vec![0, 0, 1]));
    assert_eq!(data.class_to_idx()["dog"], 1);
    let shades: Vec<u8> = (0..3).map(|i| data.get(i).unwrap()[0].to_vec::<u8>()[0]).collect();
    assert_eq!((shades, data.get(2).unwrap()[1].to_vec::<i64>()), (vec![1, 3, 2], vec![1]));
    let all = ImageFolder::new(folder.path()).unwrap();
    assert_eq!((all.len(), all.get(0).unwrap().len()), (4, 1));
    let notes = FolderBuilder::new(folder.path())
        .loader(|path| Ok(Tensor::new(std::fs::read(path).unwrap().len() as i64)))
        .is_valid_file(|path| path.extension().is_some_and(|e| e == "txt"))
        .transform(|x: &Tensor| Ok(x * 2))
        .dataset_folder()
        .unwrap();
    assert_eq!((notes.len(), notes.get(0).unwrap()[0].to_f64()), (1, 10.0));
    let none = FolderBuilder::new(folder.path()).extensions([".xyz"]).dataset_folder().err().unwrap().to_string();
    assert!(none.contains(".xyz") && none.contains("2 folders") && none.contains("root/class/file"), "{none}");
    let both = FolderBuilder::new(folder.path()).extensions([".png"]).is_valid_file(|_| true).image_folder();
    assert!(both.err().unwrap().to_string().contains("not both"));
    assert!(ImageFolder::new(folder.path().join("nowhere")).is_err());
}

#[cfg(unix)]
#[test]
fn links_in_a_circle_end() {
    let folder = Folder::new();
    folder.write("a/1.png", &picture(ImageFormat::Png, 1, 1, [0; 3]));
    std::os::unix::fs::symlink(folder.path(), folder.path().join("a/up")).unwrap();
    assert_eq!(ImageFolder::new(folder.path()).unwrap().len(), 1);
}

/// Ten rows: feature `c` of row `r` is `c + r`, the price is `100 r`.
#[test]
fn houses() {
    let folder = Folder::new();
    let row = |r: usize| (0..13).map(|c| format!(" {}", c + r)).collect::<String>() + &format!("  {}\n", 100 * r);
    let path = folder.write("housing.data", (0..10).map(row).collect::<String>().as_bytes());
    let (train, test) = (UciHousing::open(&path, Split::Train).unwrap(), UciHousing::open(&path, Split::Test).unwrap());
    assert_eq!((train.len(), test.len(), test.name()), (8, 2, "UciHousing"));
    let last = test.get(1).unwrap();
    assert_eq!((last[0].to_vec::<f32>(), last[1].to_vec::<f32>()), (vec![0.5; 13], vec![900.0]));
    for broken in [&b""[..], b"1 2 3", b"x y", &b"1 ".repeat(27), &b"nan ".repeat(14)] {
        assert!(UciHousing::open(folder.write("broken", broken), Split::Train).is_err());
    }
    assert!(UciHousing::open(&path, Split::Valid).is_err());
}
