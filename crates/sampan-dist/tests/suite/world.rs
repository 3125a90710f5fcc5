//! Who started the processes, and where they meet.

use sampan_dist::World;

fn world(variables: &[(&str, &str)]) -> sampan_core::Result<(World, sampan_core::Result<(String, bool)>)> {
    let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
    let world = World::from(&find)?;
    let place = world.meeting_place_from(&find);
    Ok((world, place))
}

fn check(variables: &[(&str, &str)], rank: usize, size: usize, local: (usize, usize), place: &str) {
    let (found, met) = world(variables).unwrap();
    assert_eq!((found.rank, found.size, (found.local_rank, found.local_size)), (rank, size, local), "{found:?}");
    assert_eq!(met.unwrap().0, place);
}

#[test]
fn every_launcher_is_understood() {
    let own = [
        ("PADDLE_TRAINER_ID", "1"),
        ("PADDLE_TRAINERS_NUM", "2"),
        ("PADDLE_TRAINER_ENDPOINTS", "10.0.0.1:70,10.0.0.2:71"),
    ];
    check(&own, 1, 2, (1, 2), "10.0.0.1:70");
    let torch = [
        ("RANK", "3"),
        ("WORLD_SIZE", "4"),
        ("LOCAL_RANK", "1"),
        ("LOCAL_WORLD_SIZE", "2"),
        ("MASTER_ADDR", "head"),
        ("MASTER_PORT", "29500"),
    ];
    check(&torch, 3, 4, (1, 2), "head:29500");
    let agent = [&torch[..], &[("TORCHELASTIC_USE_AGENT_STORE", "True")]].concat();
    check(&agent, 3, 4, (1, 2), "head:29501");
    let mpi = [
        ("OMPI_COMM_WORLD_RANK", "2"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ("MASTER_ADDR", "::1"),
        ("MASTER_PORT", "4000"),
    ];
    check(&mpi, 2, 4, (0, 2), "[::1]:4000");
    let slurm = [
        ("SLURM_PROCID", "5"),
        ("SLURM_STEP_NUM_TASKS", "6"),
        ("SLURM_LOCALID", "1"),
        ("SLURM_STEP_TASKS_PER_NODE", "2(x3)"),
        ("SLURM_STEP_NODELIST", "gpu[03-05]"),
        ("MASTER_PORT", "5000"),
    ];
    check(&slurm, 5, 6, (1, 2), "gpu03:5000");
    let mpich = [("PMI_RANK", "0"), ("PMI_SIZE", "2")];
    let (_, met) = world(&mpich).unwrap();
    assert!(met.unwrap().0.starts_with("127.0.0.1:"));
}

#[test]
fn what_does_not_fit_is_told() {
    assert_eq!(world(&[]).unwrap().0, World::alone());
    // A job's first script runs alone, although Slurm has set its number.
    assert_eq!(world(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]).unwrap().0.size, 1);
    assert!(world(&[("RANK", "x"), ("WORLD_SIZE", "2")]).unwrap_err().to_string().contains("RANK"));
    assert!(world(&[("RANK", "2"), ("WORLD_SIZE", "2")]).unwrap_err().to_string().contains("process 2 of 2"));
    let (_, nowhere) = world(&[("RANK", "0"), ("WORLD_SIZE", "2")]).unwrap();
    assert!(nowhere.unwrap_err().to_string().contains("MASTER_ADDR"));
}
