//! Random transforms: the same for one seed, sure at probability 0 and 1, within their ranges.

use crate::alone;
use sampan_core::{DType, Tensor, random};
use sampan_data::vision::transforms::*;

/// Every pixel has a value of its own.
fn picture(h: usize, w: usize) -> Tensor {
    Tensor::from_vec((0..h * w).flat_map(|i| [i as u8, (i / 7) as u8, (i * 3) as u8]).collect(), [h, w, 3])
}

fn all() -> Vec<std::sync::Arc<dyn Transform>> {
    transforms![
        RandomResizedCrop::new(8),
        RandomHorizontalFlip::new(),
        RandomVerticalFlip::new(),
        BrightnessTransform::new(0.4),
        ContrastTransform::new(0.4),
        SaturationTransform::new(0.4),
        HueTransform::new(0.3),
        ColorJitter::with(|o| o.brightness(0.4).contrast(0.4).saturation(0.4).hue(0.2)),
        RandomCrop::with(8, |o| o.padding(2)),
        RandomAffine::with(30, |o| o.translate([0.2, 0.2]).scale([0.8, 1.2]).shear([-5, 5, -5, 5])),
        RandomRotation::new(40),
        RandomPerspective::with(|o| o.prob(1.0)),
        RandomErasing::with(|o| o.prob(1.0).value("random")),
    ]
}

#[test]
fn a_seed_decides_everything() {
    let _alone = alone();
    let x = picture(12, 14);
    for (i, t) in all().iter().enumerate() {
        let run = |seed| {
            random::seed(seed);
            (0..4).flat_map(|_| t.apply(&x).unwrap().to_vec::<u8>()).collect::<Vec<u8>>()
        };
        assert_eq!(run(1), run(1), "transform {i}");
        assert!((2..8).any(|seed| run(seed) != run(1)), "transform {i} does not depend on the seed");
    }
}

#[test]
fn dtypes_and_arrangements_stay() {
    let _alone = alone();
    let x = picture(12, 14);
    let floats = to_tensor(&x, "CHW").unwrap();
    for (i, t) in all().iter().enumerate() {
        let (a, b) = (t.apply(&x).unwrap(), t.apply(&floats).unwrap());
        assert_eq!((a.dtype(), a.shape()[2]), (DType::UInt8, 3), "transform {i}");
        assert_eq!((b.dtype(), b.shape()[0]), (DType::Float32, 3), "transform {i}");
    }
}

#[test]
fn probability_zero_and_one_are_sure() {
    let _alone = alone();
    let x = picture(6, 8);
    for prob in [0.0, 1.0] {
        let changed: Vec<bool> = transforms![
            RandomHorizontalFlip::with(|o| o.prob(prob)),
            RandomVerticalFlip::with(|o| o.prob(prob)),
            RandomErasing::with(|o| o.prob(prob).scale([0.2, 0.3]).ratio([1, 1]).value([250, 251, 252])),
        ]
        .iter()
        .map(|t| t.apply(&x).unwrap().to_vec::<u8>() != x.to_vec::<u8>())
        .collect();
        assert_eq!(changed, [prob == 1.0; 3]);
    }
    assert_eq!(RandomPerspective::with(|o| o.prob(0.0)).apply(&x).unwrap().to_vec::<u8>(), x.to_vec::<u8>());
}

#[test]
fn crops_are_parts_of_the_picture() {
    let _alone = alone();
    random::seed(3);
    let x = Tensor::from_vec((0..120).map(|v| v as u8).collect(), [10, 12]);
    let mut corners = std::collections::BTreeSet::new();
    for _ in 0..300 {
        let part = RandomCrop::new([9, 10]).apply(&x).unwrap().to_vec::<u8>();
        let corner = part[0];
        assert_eq!(part, crop(&x, corner as i64 / 12, corner as i64 % 12, 9, 10).unwrap().to_vec::<u8>());
        corners.insert(corner);
    }
    // Two rows and three columns to start from, all of them used.
    assert_eq!(corners.into_iter().collect::<Vec<u8>>(), [0, 1, 2, 12, 13, 14]);
}

#[test]
fn a_small_picture_is_padded_if_needed() {
    let _alone = alone();
    let crop = RandomCrop::with([6, 9], |o| o.pad_if_needed(true).fill(7));
    assert_eq!(crop.apply(&picture(4, 5)).unwrap().shape(), [6, 9, 3]);
}

#[test]
fn factors_stay_in_their_range() {
    let _alone = alone();
    random::seed(5);
    let x = Tensor::from_vec(vec![0.5f32; 3], [1, 1, 3]);
    let brightness: Vec<f32> =
        (0..300).map(|_| BrightnessTransform::new(0.4).apply(&x).unwrap().to_vec::<f32>()[0]).collect();
    let (low, high) = brightness.iter().fold((1.0f32, 0.0f32), |(l, h), &v| (l.min(v), h.max(v)));
    assert!((0.3..0.31).contains(&low) && (0.69..=0.7).contains(&high), "{low} to {high}");
    for nothing in [0.0, -0.0] {
        assert_eq!(ColorJitter::with(|o| o.hue(nothing)).apply(&x).unwrap().to_vec::<f32>(), [0.5; 3]);
    }
}

#[test]
fn erased_parts_have_the_asked_area_and_colour() {
    let _alone = alone();
    random::seed(11);
    let x = Tensor::from_vec(vec![1u8; 20 * 30 * 3], [20, 30, 3]);
    let erase = RandomErasing::with(|o| o.prob(1.0).scale([0.1, 0.2]).ratio([0.5, 2.0]).value([7, 8, 9]));
    for _ in 0..50 {
        let y = erase.apply(&x).unwrap().to_vec::<u8>();
        let wiped = y.chunks(3).filter(|p| *p == [7, 8, 9]).count();
        assert_eq!(wiped + y.chunks(3).filter(|p| *p == [1, 1, 1]).count(), 600);
        // Sides are rounded to whole pixels.
        assert!((48..=135).contains(&wiped), "{wiped} of 600 pixels");
    }
    // No area at all is nothing.
    let nothing = RandomErasing::with(|o| o.prob(1.0).scale([0, 0]).value("random")).apply(&x).unwrap();
    assert_eq!(nothing.to_vec::<u8>(), x.to_vec::<u8>());
    let (mut kept, inplace) = (x.clone(), RandomErasing::with(|o| o.prob(1.0).inplace(true).scale([0.2, 0.2])));
    kept = inplace.apply(&kept).unwrap();
    assert_eq!(kept.to_vec::<u8>(), x.to_vec::<u8>());
    assert!(x.to_vec::<u8>().contains(&0));
}
