use sampan_core::error::Kind;
use sampan_core::ops::random::rand;
use sampan_core::{Error, Tensor, random};
use sampan_data::{
    Batch, BatchSampler, DataLoader, Dataset, FnDataset, FnIterable, IndexBatches, LoaderBuilder, LoaderState,
    RandomSampler, Sample, TensorDataset, get_worker_info,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A sample is its index and a random number, as from a random transform.
fn noisy(n: usize) -> impl Dataset {
    FnDataset::new(n, |i| Ok(vec![Tensor::new(i as i64), rand([2])])).named("noisy")
}

fn bytes(batch: &Batch) -> Vec<Vec<u8>> {
    batch.iter().map(|t| t.to_bytes()).collect()
}

fn all(pass: impl IntoIterator<Item = sampan_core::Result<Batch>>) -> Vec<Vec<Vec<u8>>> {
    pass.into_iter().map(|b| bytes(&b.unwrap())).collect()
}

fn said(pass: &mut impl Iterator<Item = sampan_core::Result<Batch>>) -> String {
    pass.find_map(|b| b.err()).expect("it must fail").to_string()
}

fn eventually(mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < end, "it did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn kinds() -> Vec<(&'static str, fn(LoaderBuilder) -> LoaderBuilder)> {
    vec![
        ("calling thread", |b| b.use_buffer_reader(false)),
        ("0 workers", |b| b),
        ("1 worker", |b| b.num_workers(1)),
        ("2 workers", |b| b.num_workers(2).prefetch_factor(1)),
        ("4 workers", |b| b.num_workers(4)),
        ("3 that stay", |b| b.num_workers(3).persistent_workers(true)),
    ]
}

#[test]
fn the_same_bits_for_any_number_of_workers() {
    let epochs = |with: fn(LoaderBuilder) -> LoaderBuilder| {
        random::with_generator(7, 0, || {
            let loader = with(DataLoader::builder(noisy(23)).batch_size(4).shuffle(true)).build().unwrap();
            assert_eq!(loader.len(), Some(6));
            [all(loader.iter()), all(&loader)]
        })
    };
    let expected = epochs(|b| b);
    assert_ne!(expected[0], expected[1]);
    let distinct: std::collections::BTreeSet<_> = expected.iter().flatten().map(|batch| &batch[1]).collect();
    assert_eq!(distinct.len(), 12, "every sample has its own random numbers");
    for (name, with) in kinds() {
        assert_eq!(epochs(with), expected, "{name}");
    }
}

#[test]
fn random_transforms_do_not_depend_on_the_batch_size() {
    let numbers = |size: usize| -> Vec<f32> {
        random::with_generator(1, 0, || {
            let loader = DataLoader::new(noisy(12), size, true).unwrap();
            loader.iter().flat_map(|b| b.unwrap()[1].to_vec::<f32>()).collect()
        })
    };
    assert_eq!(numbers(1), numbers(5));
}

#[test]
fn a_pass_without_shuffling_leaves_the_generator_alone() {
    random::with_generator(2, 0, || {
        let before = random::state();
        let loader = DataLoader::new(noisy(4), 2, false).unwrap();
        assert_ne!(all(&loader), all(&loader), "passes differ in their random numbers");
        assert_eq!(random::state(), before);
    });
}

#[test]
fn a_pass_goes_on_at_any_batch() {
    for (name, with) in kinds() {
        random::with_generator(3, 0, || {
            let read = Arc::new(AtomicUsize::new(0));
            let count = read.clone();
            let data = noisy(20).map(move |s| {
                count.fetch_add(1, Ordering::Relaxed);
                Ok(s)
            });
            let loader = with(DataLoader::builder(data).batch_size(3).shuffle(true)).build().unwrap();
            all(&loader);
            let mut pass = loader.iter();
            let first: Vec<_> = all(pass.by_ref().take(4));
            let kept = LoaderState::from_numbers(&pass.state().to_numbers()).unwrap();
            let rest = all(pass);
            read.store(0, Ordering::Relaxed);
            let moved = random::state();
            assert_eq!(all(loader.resume(&kept).unwrap()), rest, "{name}");
            assert_eq!(read.load(Ordering::Relaxed), 8, "{name}: earlier batches are not read");
            assert_eq!(random::state(), moved, "the generator stays where it was");
            let begin = LoaderState { batch: 0, ..kept };
            assert_eq!(all(loader.resume(&begin).unwrap().take(4)), first);
        });
    }
}

#[test]
fn a_sampler_with_its_own_generator_is_resumed() {
    let own = sampan_data::sampler::RandomOptions { generator: Some(9), ..Default::default() };
    let batches = BatchSampler::new(RandomSampler::with(12, own).unwrap(), 5, true).unwrap();
    let loader = DataLoader::builder(noisy(12)).batch_sampler(Arc::new(batches)).build().unwrap();
    let mut pass = loader.iter();
    pass.next();
    let kept = pass.state();
    let rest = all(pass);
    assert_eq!(rest.len(), 1);
    assert_ne!(all(&loader)[1], rest[0]);
    assert_eq!(all(loader.resume(&kept).unwrap()), rest);
}

#[test]
fn a_failing_sample_is_named() {
    for (kind, with) in kinds() {
        let data = FnDataset::new(10, |i| match i {
            7 => Err(Error::new(Kind::NotFound, "no such file")),
            _ => Ok(vec![Tensor::new(i as i64)]),
        });
        let loader = with(DataLoader::builder(data.named("pets")).batch_size(3)).build().unwrap();
        let mut pass = loader.iter();
        assert_eq!(pass.by_ref().take(2).filter(|b| b.is_ok()).count(), 2);
        let said = said(&mut pass);
        assert!(said.starts_with("(NotFound) no such file") && said.contains("pets[7]"), "{kind}: {said}");
        assert!(pass.next().is_none(), "a pass ends with its error");
    }
}

#[test]
fn a_panicking_sample_is_an_error() {
    for (kind, with) in kinds() {
        let data = FnDataset::new(4, |i| {
            assert!(i != 2, "two is too much");
            Ok(vec![Tensor::new(i as i64)])
        });
        let said = said(&mut with(DataLoader::builder(data)).build().unwrap().iter());
        assert!(said.contains("panicked: two is too much") && said.contains("FnDataset[2]"), "{kind}: {said}");
    }
}

#[test]
fn samples_that_do_not_fit_are_named() {
    let data = FnDataset::new(4, |i| Ok(vec![Tensor::from_vec(vec![0.0f32; i / 3 + 1], [i / 3 + 1])]));
    let said = said(&mut DataLoader::new(data.named("ragged"), 4, false).unwrap().iter());
    assert!(said.contains("field 0") && said.contains("[2] float32 in sample 3") && said.contains("ragged"), "{said}");
}

struct Broken(bool);

impl IndexBatches for Broken {
    fn len(&self) -> usize {
        2
    }
    fn iter(&self) -> sampan_core::Result<Box<dyn Iterator<Item = Vec<usize>> + Send>> {
        let panics = self.0;
        Ok(Box::new((0..2).map(move |i| {
            if i == 0 {
                vec![0]
            } else if panics {
                panic!("lost count")
            } else {
                vec![99]
            }
        })))
    }
}

#[test]
fn broken_samplers_are_errors() {
    for (kind, with) in kinds() {
        let fails = |panics| {
            let loader = with(DataLoader::builder(noisy(3)).batch_sampler(Broken(panics))).build().unwrap();
            said(&mut loader.iter())
        };
        assert!(fails(false).contains("noisy has 3 samples, there is none at index 99"), "{kind}");
        assert!(fails(true).contains("panicked: lost count"), "{kind}");
    }
}

#[test]
fn a_slow_sample_is_a_timeout() {
    let open = Arc::new(AtomicBool::new(false));
    let gate = open.clone();
    let data = FnDataset::new(2, move |i| {
        eventually(|| gate.load(Ordering::Relaxed));
        Ok(vec![Tensor::new(i as i64)])
    });
    let loader =
        DataLoader::builder(data.named("slow")).num_workers(1).timeout(Duration::from_millis(30)).build().unwrap();
    let said = said(&mut loader.iter());
    assert!(said.contains("(Unavailable)") && said.contains("batch 0") && said.contains("slow"), "{said}");
    open.store(true, Ordering::Relaxed);
}

#[test]
fn an_early_end_stops_the_workers() {
    for (kind, with) in kinds() {
        let read = Arc::new(AtomicUsize::new(0));
        let data: Arc<dyn Dataset> = {
            let read = read.clone();
            Arc::new(FnDataset::new(100_000, move |i| {
                read.fetch_add(1, Ordering::Relaxed);
                Ok(vec![Tensor::new(i as i64)])
            }))
        };
        let loader = with(DataLoader::builder(data.clone()).batch_size(10)).build().unwrap();
        let mut pass = loader.iter();
        pass.next().unwrap().unwrap();
        drop(pass);
        drop(loader);
        // The threads let go of the data when they end.
        eventually(|| Arc::strong_count(&data) == 1);
        assert!(read.load(Ordering::Relaxed) <= 200, "{kind}: no more than what may be ahead is read");
    }
}

#[test]
fn workers_that_stay_serve_pass_after_pass() {
    let started = Arc::new(AtomicUsize::new(0));
    let count = started.clone();
    let loader = DataLoader::builder(noisy(8))
        .num_workers(2)
        .persistent_workers(true)
        .worker_init_fn(move |id| {
            assert_eq!(get_worker_info().unwrap().id, id);
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .build()
        .unwrap();
    for _ in 0..3 {
        assert_eq!(loader.iter().count(), 8);
    }
    // On a busy machine one thread may have done all the work before the other had begun.
    eventually(|| started.load(Ordering::Relaxed) == 2);
    let mut first = loader.iter();
    first.next().unwrap().unwrap();
    assert_eq!(loader.iter().filter(|b| b.is_ok()).count(), 8);
    assert_eq!(started.load(Ordering::Relaxed), 2, "no thread is started twice");
    assert!(said(&mut first).contains("a new pass over this loader ended the one before it"));
}

#[test]
fn a_failing_start_is_an_error() {
    let loader = DataLoader::builder(noisy(3)).num_workers(2);
    let loader = loader.worker_init_fn(|id| Err(Error::invalid(format!("no licence for {id}")))).build().unwrap();
    let said = said(&mut loader.iter());
    assert!(said.contains("no licence") && said.contains("worker_init_fn"), "{said}");
}

#[test]
fn workers_know_who_they_are() {
    let who = || {
        FnDataset::new(6, |_| {
            let info = get_worker_info();
            Ok(vec![Tensor::new(info.map_or(-1, |w| (w.num_workers * 10) as i64))])
        })
    };
    let one = |with: fn(LoaderBuilder) -> LoaderBuilder| -> Vec<f64> {
        with(DataLoader::builder(who())).build().unwrap().iter().map(|b| b.unwrap()[0].to_f64()).collect()
    };
    assert_eq!(one(|b| b), [-1.0; 6]);
    assert_eq!(one(|b| b.num_workers(3)), [30.0; 6]);
    assert_eq!(get_worker_info(), None);
}

#[test]
fn without_batching_samples_come_as_they_are() {
    for (kind, with) in kinds() {
        let loader = with(DataLoader::builder(noisy(3)).batch_size(None)).build().unwrap();
        assert_eq!(loader.len(), Some(3));
        let shapes: Vec<Vec<usize>> = loader.iter().map(|b| b.unwrap()[1].shape().to_vec()).collect();
        assert_eq!(shapes, [[2], [2], [2]], "{kind}");
    }
}

#[test]
fn a_collate_function_replaces_stacking() {
    let sum = |samples: Vec<Sample>| Ok(vec![Tensor::new(samples.iter().map(|s| s[0].to_f64()).sum::<f64>())]);
    let data = TensorDataset::new(vec![Tensor::new([1.0f32, 2.0, 3.0])]).unwrap();
    let loader = DataLoader::builder(data).batch_size(2).collate_fn(sum).build().unwrap();
    let sums: Vec<f64> = loader.iter().map(|b| b.unwrap()[0].to_f64()).collect();
    assert_eq!(sums, [3.0, 3.0]);
}

#[test]
fn wrong_settings() {
    let with = || DataLoader::builder(noisy(3));
    let stream = || DataLoader::iterable(FnIterable::new(std::iter::empty));
    let order = || BatchSampler::of(3, false, 2, false).unwrap();
    for (builder, words) in [
        (with().batch_size(0), "batch_size must be positive"),
        (with().prefetch_factor(0), "prefetch_factor"),
        (with().batch_sampler(order()).batch_size(2), "beside batch_sampler"),
        (with().batch_sampler(order()).shuffle(true), "beside batch_sampler"),
        (with().batch_sampler(order()).drop_last(true), "beside batch_sampler"),
        (stream().shuffle(true), "shuffle must not be set"),
        (stream().batch_sampler(order()), "batch_sampler must not be set"),
        (DataLoader::builder(noisy(0)).shuffle(true), "at least one sample"),
    ] {
        let said = builder.build().err().unwrap().to_string();
        assert!(said.contains(words), "{said}");
    }
    let empty = DataLoader::new(noisy(0), 2, false).unwrap();
    assert!(empty.is_empty() && empty.iter().next().is_none());
}

/// Numbers below `n`, split among workers, with a random number each.
fn split_numbers(n: i64) -> FnIterable<impl Fn() -> Box<dyn Iterator<Item = sampan_core::Result<Sample>> + Send>> {
    FnIterable::new(move || -> Box<dyn Iterator<Item = sampan_core::Result<Sample>> + Send> {
        let (id, workers) = get_worker_info().map_or((0, 1), |w| (w.id as i64, w.num_workers));
        Box::new((id..n).step_by(workers).map(|i| Ok(vec![Tensor::new(i), rand([1])])))
    })
}

#[test]
fn streams_are_split_among_workers() {
    let numbers = |with: fn(LoaderBuilder) -> LoaderBuilder| -> Vec<Vec<i64>> {
        let loader = with(DataLoader::iterable(split_numbers(7)).batch_size(2)).build().unwrap();
        assert_eq!(loader.len(), None);
        loader.iter().map(|b| b.unwrap()[0].to_vec::<i64>()).collect()
    };
    for (_, with) in &kinds()[..3] {
        let with = *with;
        assert_eq!(numbers(with), [vec![0, 1], vec![2, 3], vec![4, 5], vec![6]]);
    }
    // Workers give batches in turn; one that has ended is passed over.
    assert_eq!(numbers(|b| b.num_workers(2)), [vec![0, 2], vec![1, 3], vec![4, 6], vec![5]]);
    assert_eq!(numbers(|b| b.num_workers(3).drop_last(true)), [vec![0, 3], vec![1, 4], vec![2, 5]]);
    assert_eq!(numbers(|b| b.num_workers(3).persistent_workers(true)), [vec![0, 3], vec![1, 4], vec![2, 5], vec![6]]);
}

#[test]
fn streams_go_on_and_repeat() {
    random::with_generator(4, 0, || {
        let loader = DataLoader::iterable(split_numbers(20)).batch_size(3).num_workers(2).build().unwrap();
        let mut pass = loader.iter();
        all(pass.by_ref().take(3));
        let kept = pass.state();
        let rest = all(pass);
        assert_eq!(all(loader.resume(&kept).unwrap()), rest);
        let inline = DataLoader::iterable(split_numbers(20)).batch_size(3).use_buffer_reader(false).build().unwrap();
        let buffered = DataLoader::iterable(split_numbers(20)).batch_size(3).build().unwrap();
        assert_eq!(all(&inline), all(&buffered));
    });
}

#[test]
fn failing_streams() {
    for (kind, with) in kinds() {
        let at_start = FnIterable::new(|| -> std::vec::IntoIter<_> { panic!("no stream") });
        let said_first = said(&mut with(DataLoader::iterable(at_start)).build().unwrap().iter());
        assert!(said_first.contains("panicked: no stream"), "{kind}: {said_first}");
        let later = FnIterable::new(|| {
            (0..5i64).map(|i| if i == 3 { Err(Error::invalid("cut off")) } else { Ok(vec![Tensor::new(i)]) })
        });
        let said_later = said(&mut with(DataLoader::iterable(later)).build().unwrap().iter());
        assert!(said_later.contains("cut off") && said_later.contains("sample 3 of worker"), "{kind}: {said_later}");
        let endless = FnIterable::new(|| std::iter::repeat_with(|| Ok(vec![Tensor::new(0i64)])));
        let loader = with(DataLoader::iterable(endless).batch_size(2)).build().unwrap();
        assert_eq!(loader.iter().take(5).filter(|b| b.is_ok()).count(), 5);
    }
}
