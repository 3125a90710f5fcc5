//! How long an all-reduce takes, when asked: `SAMPAN_SPEED=times.txt cargo test -p sampan-dist --test suite speed`.

use crate::processes::run;
use sampan_core::{DType, Tensor};
use sampan_dist::{Job, ReduceOp};
use std::time::Instant;

/// The median time of an all-reduce, said by rank 0 on its error output.
pub fn speed(job: &Job) -> String {
    let group = job.everybody();
    for (bytes, times) in [(1 << 10, 300), (4 << 20, 40), (64 << 20, 8)] {
        let t = Tensor::zeros([bytes / 4], DType::Float32);
        let mut took: Vec<f64> = Vec::new();
        for _ in 0..times {
            group.barrier().unwrap();
            let since = Instant::now();
            group.all_reduce(&t, ReduceOp::Sum).unwrap();
            took.push(since.elapsed().as_secs_f64() * 1e3);
        }
        took.sort_by(f64::total_cmp);
        if job.world().rank == 0 {
            let (name, size) = (group.backend().0, group.size());
            let line = format!(
                "{name} {size} ranks {:>9} bytes: median {:.3} ms, best {:.3} ms\n",
                bytes,
                took[times / 2],
                took[0]
            );
            std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(std::env::var("SAMPAN_SPEED").unwrap())
                .and_then(|mut f| std::io::Write::write_all(&mut f, line.as_bytes()))
                .unwrap();
        }
    }
    String::new()
}

#[test]
fn all_reduce_speed() {
    if std::env::var("SAMPAN_SPEED").is_err() {
        return;
    }
    for engine in ["shared_memory", "tcp", "gloo"] {
        for size in [2, 4] {
            run("speed", size, engine);
        }
    }
}
