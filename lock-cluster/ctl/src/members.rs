//! `members`: who belongs to the cluster.

use std::process::ExitCode;

use lock_client::ClusterClient;
use lock_client::wire::AddMember;

use crate::args::MembersCommand;
use crate::out::{say, say_json, say_line};
use crate::show::{age, best_status};
use crate::table::{Table, known};

pub(crate) async fn run(
    cluster: &ClusterClient,
    command: Option<MembersCommand>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    match command.unwrap_or(MembersCommand::List) {
        MembersCommand::List => {}
        MembersCommand::Add {
            id,
            peer_addr,
            client_addr,
            learner,
        } => {
            cluster
                .add_member(&AddMember {
                    id,
                    peer_addr,
                    client_addr,
                    voter: !learner,
                })
                .await?;
        }
        MembersCommand::Promote { id } => {
            cluster.promote_member(id).await?;
        }
        MembersCommand::Remove { id } => {
            cluster.remove_member(id).await?;
        }
    }
    list(cluster, json).await
}

async fn list(cluster: &ClusterClient, json: bool) -> anyhow::Result<ExitCode> {
    let status = best_status(cluster).await?;
    if json {
        say_json(&status.members)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["id", "role", "peers", "clients", "matched", "lag", "silent"]);
    for member in &status.members {
        let role = match (status.leader == Some(member.id), member.voter) {
            (true, _) => "leader",
            (false, true) => "voter",
            (false, false) => "learner",
        };
        let progress = status
            .replication
            .iter()
            .find(|replication| replication.id == member.id);
        table.row([
            member.id.to_string(),
            role.to_owned(),
            member.peer_addr.clone(),
            member.client_url.clone(),
            known(progress.and_then(|progress| progress.matched_index)),
            known(progress.and_then(|progress| progress.lag)),
            progress
                .and_then(|progress| progress.silent_ms)
                .map_or_else(|| "-".to_owned(), age),
        ]);
    }
    say(table)?;
    if status.changing_members {
        say_line(
            "\na change of members is under way; it needs a majority of the voters before and after it",
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
