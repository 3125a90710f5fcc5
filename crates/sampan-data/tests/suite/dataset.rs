use sampan_core::{Tensor, random};
use sampan_data::{
    ComposeDataset, ConcatDataset, Dataset, FnDataset, Lengths, Mnist, Split, Subset, TensorDataset, default_collate,
    random_split,
};

fn numbers(from: i64, n: usize) -> TensorDataset {
    TensorDataset::new(vec![Tensor::from_vec((from..from + n as i64).collect(), [n])]).unwrap()
}

fn error<T>(result: sampan_core::Result<T>) -> String {
    result.err().expect("it must fail").to_string()
}

#[test]
fn wrong_arguments_are_named() {
    let said = error(TensorDataset::new(vec![Tensor::new([1.0f32, 2.0]), Tensor::new([1i64, 2, 3])]));
    assert!(said.contains("2 as tensors[0]") && said.contains("tensors[1] of shape [3]"), "{said}");
    error(TensorDataset::new(vec![]));
    error(TensorDataset::new(vec![Tensor::new(1.0f32)]));
    error(ComposeDataset::new(vec![]));
    error(ConcatDataset::new(vec![]));
    let said = error(ComposeDataset::new(vec![Box::new(numbers(0, 2)), Box::new(numbers(0, 3))]));
    assert!(said.contains("2 samples") && said.contains("with 3"), "{said}");
    let said = error(Subset::new(numbers(0, 3), vec![0, 3]));
    assert!(said.contains("TensorDataset has 3 samples, there is none at index 3"), "{said}");
    assert!(numbers(0, 3).get(3).is_err());
}

#[test]
fn whole_batches_are_the_stacked_samples() {
    let joined = ConcatDataset::new(vec![Box::new(numbers(0, 3)), Box::new(numbers(10, 0)), Box::new(numbers(20, 2))]);
    let joined = joined.unwrap();
    let compose = ComposeDataset::new(vec![Box::new(numbers(0, 5)), Box::new(numbers(7, 5))]).unwrap();
    let subset = Subset::new(numbers(0, 5), vec![4, 4, 2]).unwrap();
    let digits = Mnist::new(Split::Test).unwrap().take(5);
    let normal = Mnist::new(Split::Test).unwrap().take(5).normalized(&[127.5], &[127.5]).unwrap();
    let cases: [(&dyn Dataset, &[usize]); 6] = [
        (&joined, &[4, 3]),
        (&joined, &[2, 0]),
        (&compose, &[1, 1, 4]),
        (&subset, &[2, 0]),
        (&digits, &[3, 1]),
        (&normal, &[4, 0]),
    ];
    for (data, indices) in cases {
        let whole = data.batch(indices).expect("whole").unwrap();
        let single = default_collate(indices.iter().map(|&i| data.get(i).unwrap()).collect()).unwrap();
        for (a, b) in whole.iter().zip(&single) {
            assert_eq!((a.shape(), a.dtype(), a.to_bytes()), (b.shape(), b.dtype(), b.to_bytes()), "{}", data.name());
        }
    }
    assert!(joined.batch(&[0, 4]).is_none(), "a batch across parts is made sample by sample");
    assert_eq!(joined.get(3).unwrap()[0].to_f64(), 20.0);
}

#[test]
fn splits_are_a_partition() {
    random::with_generator(3, 0, || {
        let parts = random_split(numbers(0, 10), [3, 0, 7]).unwrap();
        let mut all: Vec<usize> = parts.iter().flat_map(|p| p.indices().to_vec()).collect();
        assert_eq!(parts.iter().map(|p| p.len()).collect::<Vec<_>>(), [3, 0, 7]);
        assert_ne!(all, (0..10).collect::<Vec<_>>());
        all.sort();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    });
}

#[test]
fn fractions_round_down_and_the_first_parts_take_the_rest() {
    let sizes = |lengths: Lengths| -> Vec<usize> {
        random_split(numbers(0, 10), lengths).unwrap().iter().map(|p| p.len()).collect()
    };
    assert_eq!(sizes([0.25, 0.25, 0.5].into()), [3, 2, 5]);
    assert_eq!(sizes(vec![1.0].into()), [10]);
    assert!(error(random_split(numbers(0, 10), [0.5, 0.6])).contains("add up to 1"));
    assert!(error(random_split(numbers(0, 10), [1.5, -0.5])).contains("fraction 0"));
    assert!(error(random_split(numbers(0, 10), [4, 5])).contains("the 10 samples"));
}

#[test]
fn collate_names_the_field_and_the_sample() {
    let sample = |n: usize| vec![Tensor::new(1.0f32), Tensor::from_vec(vec![0i64; n], [n])];
    let said = error(default_collate(vec![sample(2), sample(2), sample(3)]));
    assert!(said.contains("field 1") && said.contains("[2] int64") && said.contains("[3] int64 in sample 2"), "{said}");
    let said = error(default_collate(vec![vec![Tensor::new(1.0f32)], vec![Tensor::new(1i64)]]));
    assert!(said.contains("float32") && said.contains("int64"), "{said}");
    assert!(error(default_collate(vec![sample(1), vec![]])).contains("0 fields in sample 1"));
    error(default_collate(vec![]));
}

#[test]
fn maps_see_every_sample() {
    let data = FnDataset::new(4, |i| Ok(vec![Tensor::new(i as i64)])).map(|s| Ok(vec![&s[0] + 1, s[0].clone()]));
    assert_eq!((data.len(), data.name()), (4, "FnDataset"));
    assert_eq!(data.get(2).unwrap()[0].to_f64(), 3.0);
}
