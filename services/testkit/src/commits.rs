//! Commits whose answer is lost: what a server that dies at the worst moment leaves its client with.

/// Makes a PostgreSQL server end a session that commits a change of `table`: whether it had committed by then, the client
/// cannot know. Until [`mend_commits`].
pub async fn break_commits(url: &str, table: &str) {
    let trigger = format!(
        "create or replace function break() returns trigger language plpgsql as $$
             begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
         create constraint trigger break_at_commit after insert or update on {table}
             deferrable initially deferred for each row execute function break();"
    );
    run(url, trigger).await;
}

/// Lets commits through again.
pub async fn mend_commits(url: &str, table: &str) {
    run(url, format!("drop trigger break_at_commit on {table};")).await;
}

async fn run(url: &str, statements: String) {
    let connection = sqlx::PgPool::connect(url).await.expect("a connection");
    let statements = sqlx::raw_sql(sqlx::AssertSqlSafe(statements));
    statements.execute(&connection).await.expect("a trigger");
    connection.close().await;
}
