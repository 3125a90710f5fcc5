//! Which layer is which.

use crate::{none, recording, row, wave};
use sampan_align::{Corrections, Structure, pair};

fn weights(list: &[(&str, &[usize])]) -> Vec<(String, Vec<usize>)> {
    list.iter().map(|(n, s)| (n.to_string(), s.to_vec())).collect()
}

#[test]
fn files_of_weights_are_paired_by_names_shapes_and_order() {
    let torch = Structure::from_weights(
        "torch",
        &weights(&[
            ("features.0.weight", &[6, 1, 3, 3]),
            ("features.0.bias", &[6]),
            ("bn.weight", &[6]),
            ("bn.bias", &[6]),
            ("bn.running_mean", &[6]),
            ("bn.running_var", &[6]),
            ("bn.num_batches_tracked", &[]),
            ("fc.weight", &[10, 84]),
            ("fc.bias", &[10]),
        ]),
    );
    let ours = Structure::from_weights(
        "sampan",
        &weights(&[
            ("stem.conv.weight", &[6, 1, 3, 3]),
            ("stem.conv.bias", &[6]),
            ("stem.norm.weight", &[6]),
            ("stem.norm.bias", &[6]),
            ("stem.norm._mean", &[6]),
            ("stem.norm._variance", &[6]),
            ("head.weight", &[84, 10]),
            ("head.bias", &[10]),
        ]),
    );
    let pairing = pair(&torch, &ours, &Corrections::default()).unwrap();
    let found: Vec<_> = pairing.parameters.iter().map(|p| (p.reference.as_str(), p.candidate.as_str())).collect();
    assert!(found.contains(&("bn.running_var", "stem.norm._variance")), "{found:?}");
    assert!(found.contains(&("features.0.weight", "stem.conv.weight")) && found.len() == 8, "{found:?}");
    let fc = pairing.parameters.iter().find(|p| p.reference == "fc.weight").unwrap();
    assert!(fc.transform.transpose && fc.candidate == "head.weight");
    assert!(pairing.left_reference.is_empty() && pairing.left_candidate.is_empty());
}

#[test]
fn one_weight_of_three_projections_is_taken_apart() {
    let torch = Structure::from_weights(
        "torch",
        &weights(&[
            ("attn.in_proj_weight", &[12, 4]),
            ("attn.in_proj_bias", &[12]),
            ("attn.out_proj.weight", &[4, 4]),
            ("attn.out_proj.bias", &[4]),
        ]),
    );
    let mut names = Vec::new();
    for p in ["q_proj", "k_proj", "v_proj", "out_proj"] {
        names.push((format!("attn.{p}.weight"), vec![4, 4]));
        names.push((format!("attn.{p}.bias"), vec![4]));
    }
    let ours = Structure::from_weights("sampan", &names);
    for (a, b, parts) in [(&torch, &ours, 8), (&ours, &torch, 8)] {
        let pairing = pair(a, b, &Corrections::default()).unwrap();
        assert_eq!(pairing.parameters.len(), parts, "{}", pairing.table(a, b));
    }
    let pairing = pair(&torch, &ours, &Corrections::default()).unwrap();
    let k = pairing.parameters.iter().find(|p| p.candidate == "attn.k_proj.weight").unwrap();
    assert_eq!((k.transform.take, k.transform.transpose), (Some((4, 4)), true));
    let t = k.transform.apply(&wave(&[12, 4]), &[4, 4]).unwrap();
    assert_eq!(t.to_vec::<f32>(), wave(&[12, 4]).narrow(0, 4, 4).t().to_vec::<f32>());
}

#[test]
fn a_user_corrects_pairs_in_a_few_lines() {
    let side = |a: &str, b: &str| {
        let names = [(format!("{a}.weight"), vec![4, 4]), (format!("{b}.weight"), vec![4, 4])];
        Structure::from_weights("sampan", &names)
    };
    let (a, b) = (side("one", "two"), side("first", "second"));
    let map = Corrections::parse("# crossed\none = second\ntwo = first\n").unwrap();
    let pairing = pair(&a, &b, &map).unwrap();
    let found: Vec<_> = pairing.parameters.iter().map(|p| (p.reference.as_str(), p.candidate.as_str())).collect();
    assert_eq!(found, [("one.weight", "second.weight"), ("two.weight", "first.weight")]);
    let map = Corrections::parse("one = -\n").unwrap();
    assert_eq!(pair(&a, &b, &map).unwrap().left_reference, ["one.weight"]);

    let unknown = pair(&a, &b, &Corrections::parse("ones = first").unwrap()).unwrap_err().to_string();
    assert!(unknown.contains("ones"), "{unknown}");
    let nonsense = Corrections::parse("one second").unwrap_err().to_string();
    assert!(nonsense.contains("line 1") && nonsense.contains("no `=`"), "{nonsense}");
}

#[test]
fn calls_are_paired_in_the_order_of_execution_and_containers_follow() {
    let x = wave(&[2, 4]);
    let one = recording(
        "torch",
        &x,
        &[
            row("net.fc1", "Linear", none(), &(x.clone() * 2.0f32)),
            row("net.act", "GELU", none(), &x.gelu(false)),
            row("net.fc2", "Linear", none(), &(x.clone() * 3.0f32)),
        ],
    );
    let other = recording(
        "sampan",
        &x,
        &[row("mlp.0", "Linear", none(), &(x.clone() * 2.0f32)), row("mlp.2", "Linear", none(), &(x.clone() * 3.0f32))],
    );
    let pairing = pair(&one.structure, &other.structure, &Corrections::default()).unwrap();
    assert_eq!(pairing.partner("net.fc2"), Some("mlp.2"));
    assert_eq!(pairing.partner("net.act"), None);
    let table = pairing.table(&one.structure, &other.structure);
    assert!(table.contains("net.fc1") && table.contains("mlp.0"), "{table}");
}
