//! Tensors print as PaddlePaddle prints them; `scripts/display_golden.py` recorded its answers.

use sampan_core::tensor::{PrintOptions, print_options, set_printoptions};
use sampan_core::{DType, Tensor};
use serde_json::Value as Json;

fn dtype(name: &str) -> DType {
    DType::ALL.into_iter().find(|d| d.to_string() == name).expect("a dtype")
}

fn options(o: &Json) -> PrintOptions {
    let n = |k: &str| o[k].as_u64().unwrap() as usize;
    PrintOptions {
        precision: n("precision"),
        threshold: n("threshold"),
        edgeitems: n("edgeitems"),
        sci_mode: o["sci_mode"].as_bool().unwrap(),
        linewidth: n("linewidth"),
    }
}

#[test]
fn as_the_peer_prints() {
    let cases: Vec<Json> = serde_json::from_str(include_str!("../data/display.json")).unwrap();
    assert!(cases.len() > 40);
    for c in &cases {
        let values: Vec<f64> = c["values"].as_str().unwrap().split_whitespace().map(|v| v.parse().unwrap()).collect();
        let shape: Vec<usize> = c["shape"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as usize).collect();
        let dtype = dtype(c["dtype"].as_str().unwrap());
        let t = if dtype.is_complex() {
            Tensor::from_vec(values, [&shape[..], &[2]].concat()).as_complex().cast(dtype)
        } else {
            Tensor::from_vec(values, &shape).cast(dtype)
        };
        t.set_stop_gradient(c["stop"].as_bool().unwrap());
        let text = t.to_string_with(&options(&c["options"]));
        // Paddle 3 names the place otherwise; sampan keeps the name of Paddle 2.
        let want = c["text"].as_str().unwrap().replace("Place(cpu)", "CPUPlace");
        assert_eq!(text, want, "\n--- got\n{text}\n--- the peer\n{want}");
    }
}

#[test]
fn views_and_meta() {
    let x = Tensor::new([[1i64, 2], [3, 4]]);
    assert!(x.t().to_string().ends_with("[[1, 3],\n        [2, 4]])"), "{}", x.t());
    let m = Tensor::meta([2, 3], DType::Float16);
    assert_eq!(m.to_string(), "Tensor(shape=[2, 3], dtype=float16, place=MetaPlace, stop_gradient=True)");
}

#[test]
fn options_of_the_process() {
    crate::alone::alone("display::options_of_the_process", || {
        let before = print_options();
        assert_eq!(before, PrintOptions::default());
        assert!(format!("{:.2}", Tensor::new([0.5f32, 1.0])).ends_with("[0.50, 1.  ])"));
        set_printoptions(PrintOptions { sci_mode: true, precision: 1, ..before });
        assert!(format!("{:?}", Tensor::new([0.5f32])).ends_with("[5.0e-01])"));
    });
}
