//! Small files of every kind that data sets are read from.

use image::{ImageFormat, RgbImage};
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder that is deleted in the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("sampan-data-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // A file that is cut and written again is flushed by some file systems, which takes long.
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn tar(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, bytes.as_slice()).unwrap();
    }
    builder.into_inner().unwrap()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A picture of one colour.
pub fn picture(format: ImageFormat, width: u32, height: u32, colour: [u8; 3]) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    RgbImage::from_pixel(width, height, image::Rgb(colour)).write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A PNG with a palette, whose values have `bits` bits each and are packed in `rows`.
pub fn palette_png(width: u32, bits: png::BitDepth, rows: &[u8]) -> Vec<u8> {
    let line = (width as usize * bits as usize).div_ceil(8);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, (rows.len() / line) as u32);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(bits);
    encoder.set_palette([0u8; 3 * 4].to_vec());
    encoder.write_header().unwrap().write_image_data(rows).unwrap();
    bytes
}

/// Two images and the labels 3 and 9 as each generation of Python pickles them.
pub fn pickles() -> [Vec<u8>; 3] {
    let data = cifar_pixels();
    let python2 = [
        b"\x80\x02}q\x01(U\x0bbatch_labelq\x02U\x01xq\x03U\x06labelsq\x04]q\x05(K\x03K\x09eU\x04dataq\x06\
          cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08K\x00\x85U\x01b\x87Rq\x09(K\x01K\x02M\x00\x0c\
          \x86cnumpy\ndtype\nq\x0aU\x02u1K\x00K\x01\x87Rq\x0b(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T\
          \x00\x18\x00\x00",
        &data[..],
        b"tbu.",
    ]
    .concat();
    let latin1: String = data.iter().map(|&b| b as char).collect();
    let python3 = [
        b"\x80\x02}q\x00(c_codecs\nencode\nq\x01X\x0b\x00\x00\x00batch_labelq\x02X\x06\x00\x00\x00latin1q\x03\x86q\x04Rq\
          \x05h\x01X\x01\x00\x00\x00xq\x06h\x03\x86q\x07Rq\x08h\x01X\x06\x00\x00\x00labelsq\th\x03\x86q\nRq\x0b]q\x0c(K\
          \x03K\teh\x01X\x04\x00\x00\x00dataq\rh\x03\x86q\x0eRq\x0fcnumpy._core.multiarray\n_reconstruct\nq\x10cnumpy\n\
          ndarray\nq\x11K\x00\x85q\x12h\x01X\x01\x00\x00\x00bq\x13h\x03\x86q\x14Rq\x15\x87q\x16Rq\x17(K\x01K\x02M\x00\
          \x0c\x86q\x18cnumpy\ndtype\nq\x19X\x02\x00\x00\x00u1q\x1a\x89\x88\x87q\x1bRq\x1c(K\x03X\x01\x00\x00\x00|q\x1d\
          NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x1eb\x89h\x01X\x00$\x00\x00",
        latin1.as_bytes(),
        b"q\x1fh\x03\x86q Rq!tq\"bu.",
    ]
    .concat();
    let protocol4 = [
        b"\x80\x04\x95\xbd\x18\x00\x00\x00\x00\x00\x00}\x94(C\x0bbatch_label\x94C\x01x\x94C\x06labels\x94]\x94(K\x03K\te\
          C\x04data\x94\x8c\x16numpy._core.multiarray\x94\x8c\x0c_reconstruct\x94\x93\x94\x8c\x05numpy\x94\x8c\x07\
          ndarray\x94\x93\x94K\x00\x85\x94C\x01b\x94\x87\x94R\x94(K\x01K\x02M\x00\x0c\x86\x94h\t\x8c\x05dtype\x94\x93\
          \x94\x8c\x02u1\x94\x89\x88\x87\x94R\x94(K\x03\x8c\x01|\x94NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t\x94b\
          \x89B\x00\x18\x00\x00",
        &data[..],
        b"\x94t\x94bu.",
    ]
    .concat();
    [python2, python3, protocol4]
}

/// What the pickles hold.
pub fn cifar_pixels() -> Vec<u8> {
    (0..2 * 3072).map(|i| i as u8).collect()
}

/// A MATLAB file of arrays of bytes, compressed or not.
pub fn mat(arrays: &[(&str, &[u8])], compressed: bool) -> Vec<u8> {
    let element = |kind: u32, data: &[u8]| {
        let mut bytes = [kind.to_le_bytes(), (data.len() as u32).to_le_bytes()].concat();
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    };
    let mut file = vec![b' '; 124];
    file.extend([0, 1, b'I', b'M']);
    for (name, values) in arrays {
        let extents = [1u32.to_le_bytes(), (values.len() as u32).to_le_bytes()].concat();
        let flags = [9, 0, 0, 0, 0, 0, 0, 0];
        // Short data stands in its tag.
        let data = if values.len() <= 4 {
            let mut small = [2u16.to_le_bytes(), (values.len() as u16).to_le_bytes()].concat();
            small.extend(*values);
            small.resize(8, 0);
            small
        } else {
            element(2, values)
        };
        let matrix = [element(6, &flags), element(5, &extents), element(1, name.as_bytes()), data].concat();
        let matrix = element(14, &matrix);
        if compressed {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&matrix).unwrap();
            let packed = encoder.finish().unwrap();
            file.extend([15u32.to_le_bytes(), (packed.len() as u32).to_le_bytes()].concat());
            file.extend(packed);
        } else {
            file.extend(matrix);
        }
    }
    file
}
