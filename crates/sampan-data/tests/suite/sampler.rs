use sampan_core::{Tensor, random};
use sampan_data::sampler::{DistributedOptions, RandomOptions};
use sampan_data::{
    BatchSampler, DistributedBatchSampler, IndexBatches, RandomSampler, Sampler, SequenceSampler, SubsetRandomSampler,
    WeightedRandomSampler,
};

fn order(sampler: &dyn Sampler) -> Vec<usize> {
    let order: Vec<usize> = sampler.iter().unwrap().collect();
    assert_eq!(order.len(), sampler.len());
    order
}

fn sorted(mut order: Vec<usize>) -> Vec<usize> {
    order.sort();
    order
}

#[test]
fn the_seed_decides_every_order() {
    let samplers: [Box<dyn Sampler>; 4] = [
        Box::new(RandomSampler::new(50).unwrap()),
        Box::new(
            RandomSampler::with(9, RandomOptions { replacement: true, num_samples: Some(80), generator: None })
                .unwrap(),
        ),
        Box::new(SubsetRandomSampler::new((100..150).collect()).unwrap()),
        Box::new(WeightedRandomSampler::new(&[1.0; 30], 20, true).unwrap()),
    ];
    for sampler in &samplers {
        let draw = |seed| random::with_generator(seed, 0, || (order(&**sampler), order(&**sampler)));
        let (first, second) = draw(1);
        assert_eq!(draw(1), (first.clone(), second.clone()));
        assert_ne!(first, second, "a new order in every pass");
        assert_ne!(draw(2).0, first);
    }
}

#[test]
fn random_draws() {
    assert_eq!(sorted(order(&RandomSampler::new(20).unwrap())), (0..20).collect::<Vec<_>>());
    let some = RandomSampler::with(20, RandomOptions { num_samples: Some(5), ..Default::default() }).unwrap();
    let mut few = sorted(order(&some));
    few.dedup();
    assert_eq!(few.len(), 5);
    let again = RandomOptions { replacement: true, num_samples: Some(100), generator: None };
    let again = RandomSampler::with(3, again).unwrap();
    assert!(order(&again).iter().all(|&i| i < 3));
    let bad = |len, num_samples, replacement| {
        let options = RandomOptions { num_samples, replacement, generator: None };
        RandomSampler::with(len, options).err().unwrap().to_string()
    };
    assert!(bad(3, Some(4), false).contains("num_samples 4 must be at most the 3"));
    bad(0, None, false);
    bad(3, Some(0), true);
    bad(0, Some(3), true);
}

#[test]
fn a_generator_of_its_own_is_kept_and_restored() {
    let sampler = RandomSampler::with(30, RandomOptions { generator: Some(5), ..Default::default() }).unwrap();
    random::with_generator(0, 0, || {
        let before = random::state();
        order(&sampler);
        assert_eq!(random::state(), before);
    });
    let kept = sampler.state();
    let second = order(&sampler);
    sampler.set_state(&kept).unwrap();
    assert_eq!(order(&sampler), second);
    assert!(sampler.set_state(&[1]).is_err());
    assert!(RandomSampler::new(3).unwrap().set_state(&kept).is_err());
}

#[test]
fn weights() {
    random::with_generator(0, 0, || {
        let drawn = order(&WeightedRandomSampler::new(&[0.0, 1.0, 3.0], 4000, true).unwrap());
        let share = drawn.iter().filter(|&&i| i == 2).count() as f64 / 4000.0;
        assert!((share - 0.75).abs() < 0.03 && !drawn.contains(&0), "{share}");
        let once = order(&WeightedRandomSampler::new(&[0.5, 0.0, 0.1, 9.0], 3, false).unwrap());
        assert_eq!(sorted(once), [0, 2, 3]);
        let rows = WeightedRandomSampler::from_tensor(&Tensor::new([[1.0f32, 0.0], [0.0, 1.0]]), 2, true).unwrap();
        assert_eq!(order(&rows), [0, 0, 1, 1]);
    });
    let bad = |weights: &[f64], n, replacement| WeightedRandomSampler::new(weights, n, replacement).is_err();
    assert!(bad(&[1.0], 0, true) && bad(&[], 1, true) && bad(&[-1.0, 2.0], 1, true) && bad(&[f64::NAN], 1, true));
    assert!(bad(&[0.0], 1, true) && bad(&[1.0, 0.0], 2, false) && bad(&[f64::INFINITY], 1, true));
    assert!(WeightedRandomSampler::from_tensor(&Tensor::new(1.0f32), 1, true).is_err());
}

#[test]
fn batches() {
    let all = |len, size, drop_last| {
        let batches = BatchSampler::new(SequenceSampler::new(len), size, drop_last).unwrap();
        let list: Vec<Vec<usize>> = batches.iter().unwrap().collect();
        assert_eq!(list.len(), batches.len());
        list
    };
    assert_eq!(all(5, 2, false), [vec![0, 1], vec![2, 3], vec![4]]);
    assert_eq!(all(5, 2, true), [vec![0, 1], vec![2, 3]]);
    assert_eq!(all(4, 2, true).len(), 2);
    assert_eq!(all(0, 2, false).len(), 0);
    assert_eq!(all(2, usize::MAX, false), [vec![0, 1]]);
    assert!(BatchSampler::new(SequenceSampler::new(3), 0, false).is_err());
    assert!(SubsetRandomSampler::new(vec![]).is_err());
}

/// What `paddle.io.DistributedBatchSampler` gives for 11 samples without shuffling.
#[test]
fn processes_share_as_in_paddle() {
    let of = |rank, drop_last| -> Vec<Vec<usize>> {
        let options = DistributedOptions { num_replicas: Some(3), rank: Some(rank), drop_last, ..Default::default() };
        let sampler = DistributedBatchSampler::new(11, 3, options).unwrap();
        let list: Vec<Vec<usize>> = sampler.iter().unwrap().collect();
        assert_eq!(list.len(), sampler.len());
        list
    };
    assert_eq!(of(0, false), [vec![0, 1, 2], vec![9]]);
    assert_eq!(of(1, false), [vec![3, 4, 5], vec![10]]);
    assert_eq!(of(2, false), [vec![6, 7, 8], vec![0]]);
    assert_eq!(of(2, true), [vec![6, 7, 8]]);
    // More processes than samples: the samples come again and again.
    let options = DistributedOptions { num_replicas: Some(5), rank: Some(4), ..Default::default() };
    let many = DistributedBatchSampler::new(2, 4, options).unwrap();
    assert_eq!(many.iter().unwrap().collect::<Vec<_>>(), [vec![0]]);
}

#[test]
fn shuffled_processes_agree_and_epochs_differ() {
    let of = |rank, seed| {
        let options =
            DistributedOptions { num_replicas: Some(2), rank: Some(rank), shuffle: true, seed, ..Default::default() };
        DistributedBatchSampler::new(20, 3, options).unwrap()
    };
    let pass = |s: &DistributedBatchSampler| -> Vec<usize> { s.iter().unwrap().flatten().collect() };
    let (a, b) = (of(0, 0), of(1, 0));
    let (first, other) = (pass(&a), pass(&b));
    assert_eq!(sorted([first.clone(), other].concat()), (0..20).collect::<Vec<_>>());
    let second = pass(&a);
    assert_ne!(first, second);
    a.set_epoch(0);
    assert_eq!(pass(&a), first);
    a.set_state(&[1]).unwrap();
    assert_eq!(pass(&a), second);
    assert_ne!(pass(&of(0, 1)), first);
    let wrong = DistributedOptions { num_replicas: Some(2), rank: Some(2), ..Default::default() };
    assert!(DistributedBatchSampler::new(20, 3, wrong).is_err());
}
