//! The command line of a program, held against the rule for all of them.

use clap::Command;

/// Asserts that the flags of a program and of its subcommands fit together, and that each has an environment variable
/// and a line in `--help`.
#[track_caller]
pub fn check_flags(command: Command) {
    command.clone().debug_assert();
    let mut missing = Vec::new();
    look(&command, &mut missing);
    assert!(missing.is_empty(), "{missing:#?}");
}

fn look(command: &Command, missing: &mut Vec<String>) {
    for flag in command.get_arguments() {
        let Some(long) = flag.get_long() else { continue };
        let of = || format!("--{long} of {}", command.get_name());
        if flag.get_env().is_none() {
            missing.push(format!("{} has no environment variable", of()));
        }
        if flag.get_help().is_none() {
            missing.push(format!("{} is not explained", of()));
        }
    }
    command
        .get_subcommands()
        .for_each(|command| look(command, missing));
}
