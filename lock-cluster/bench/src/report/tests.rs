//! The report's shape is a promise: scripts read the JSON.

use serde_json::Value;

use super::*;

fn sample(cycles_per_s: f64, p99_ms: f64) -> Sample {
    Sample {
        cycles_per_s,
        p50_ms: 1.0,
        p99_ms,
        cpu_us_per_cycle: 100.0,
        client_cpu_us_per_cycle: 50.0,
        syncs_per_s: 900.0,
        rss_mib: 40.0,
        failed: 0,
    }
}

fn measured(case: Case, target: Target, cycles_per_s: [f64; 3]) -> Measured {
    let point = Point {
        case,
        clients: 64,
        target,
    };
    let rounds = cycles_per_s.map(|cycles| sample(cycles, 1_000.0 / cycles)).into();
    Measured { point, rounds }
}

fn report(measured: Vec<Measured>, skipped: Option<&str>) -> Report {
    let setting = Setting {
        machine: MachineReport {
            machine: Machine::describe(),
            file_system: "ext4".to_owned(),
            fsync_ms: 0.5,
        },
        versions: Versions {
            lock_bench: "1".to_owned(),
            build: "release".to_owned(),
            lock_node: "1".to_owned(),
            etcd: None,
        },
        shape: Shape {
            members: 3,
            shared: false,
            ttl_seconds: 10,
            rounds: 3,
            measure_ms: 1,
            warm_up_ms: 1,
        },
        skipped: skipped.map(str::to_owned),
    };
    let failover = Failovers {
        took_ms: vec![800.0, 1_200.0, 900.0],
        busy_clients: 32,
        ..Failovers::default()
    };
    Report::new(setting, measured, failover, Failovers::default())
}

fn both_sides() -> Report {
    report(
        vec![
            measured(Case::Own, Target::LockNode, [400.0, 900.0, 500.0]),
            measured(Case::Own, Target::EtcdLock, [100.0, 300.0, 100.0]),
        ],
        None,
    )
}

#[test]
fn the_json_has_what_scripts_read() {
    let json: Value = serde_json::to_value(both_sides()).unwrap();
    for key in ["machine", "versions", "points", "ratios", "failover_ms"] {
        assert!(json.get(key).is_some(), "{key} is missing");
    }
    let point = &json["points"][0];
    assert_eq!(point["case"], "own");
    assert_eq!(point["target"], "lock-node");
    assert_eq!(point["clients"], 64);
    assert_eq!(point["cycles_per_s"], 500.0);
    for key in ["p50_ms", "p99_ms", "cpu_us_per_cycle"] {
        assert!(point[key].is_f64(), "{key}");
    }
    assert_eq!(point["rounds"].as_array().unwrap().len(), 3);
    let ratio = &json["ratios"][0];
    assert_eq!(ratio["to"], "etcd-lock");
    assert_eq!(ratio["median"], 4.0);
    assert_eq!(ratio["min"], 3.0);
    assert_eq!(ratio["max"], 5.0);
    assert_eq!(json["failover_ms"].as_array().unwrap().len(), 3);
}

#[test]
fn without_etcd_there_is_no_ratio_and_the_table_says_why() {
    let alone = vec![measured(Case::One, Target::LockNode, [1.0, 2.0, 3.0])];
    let report = report(alone, Some("no etcd found"));
    assert!(report.ratios.is_empty());
    let text = report.to_string();
    assert!(text.contains("skipped: no etcd found"), "{text}");
    assert!(!text.contains("times those of etcd"), "{text}");
}

#[test]
fn the_table_has_medians_ratios_and_failovers() {
    let text = both_sides().to_string();
    assert!(text.contains("lock-node        500"), "{text}");
    assert!(text.contains("4.00x    3.00x    5.00x"), "{text}");
    assert!(text.contains("median 900 ms, worst 1200 ms"), "{text}");
    assert!(text.contains("0 sessions lost"), "{text}");
}

#[test]
fn the_plot_names_all_targets() {
    let svg = both_sides().to_svg().unwrap();
    assert!(svg.starts_with("<svg"), "{svg}");
    for word in ["lock-node", "etcd-lock", "64 on own names", "1 / 4.0"] {
        assert!(svg.contains(word), "{word} is missing");
    }
}
