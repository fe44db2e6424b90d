//! A producer and a consumer in Rust, on PostgreSQL. Copy it and replace `store` and `handle`.
//!
//!     DATABASE_URL=postgresql://user:password@host/shop cargo run -- send TYPE BODY…
//!     DATABASE_URL=postgresql://user:password@host/shop cargo run -- consume TYPE

use std::env;
use std::error::Error;
use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::future::poll_fn;
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::{watch, Notify};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_postgres::{AsyncMessage, Client, NoTls, Row, Transaction};
use uuid::Uuid;

type Anything = Box<dyn Error + Send + Sync>;

fn setting(name: &str, otherwise: i64) -> i64 {
    match env::var(name) {
        Ok(text) => text.parse().expect(name),
        Err(_) => otherwise,
    }
}

// ---- The application's own part ----

async fn store(transaction: &Transaction<'_>, body: &str) -> Result<(), tokio_postgres::Error> {
    let insert = "INSERT INTO orders (body) VALUES ($1)";
    transaction.execute(insert, &[&body]).await.map(|_| ())
}

fn handle(message: &Message) -> Result<(), Anything> {
    if let Some(error) = message.body.strip_prefix("raise ") {
        return Err(error.into());
    }
    match message.body.as_str() {
        "retry" if message.attempt == 1 => return Err("not yet".into()),
        "dead" => return Err(Dead("no such address").into()),
        "slow" => thread::sleep(Duration::from_secs(4)),
        _ => {}
    }
    let line = serde_json::to_string(&(message.id, &message.body))? + "\n";
    let path = env::var("HANDLED")?;
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    Ok(file.write_all(line.as_bytes())?)
}

/// What a handler returns to dead-letter its message.
#[derive(Debug)]
struct Dead(&'static str);

impl fmt::Display for Dead {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Dead {}

// ---- The queue ----

struct Message {
    id: i64,
    body: String,
    attempt: i32,
    key: Uuid,
}

impl From<&Row> for Message {
    fn from(row: &Row) -> Self {
        Message {
            id: row.get("id"),
            body: row.get("body"),
            attempt: row.get("attempt"),
            key: row.get("batch_key"),
        }
    }
}

#[derive(Debug)]
enum QueueError {
    /// The lease ended, or the batch was released: other consumers have its messages.
    LeaseLost(String),
    /// Another of the contract's numbered errors, such as 50002 invalid_argument.
    Refused(u16, String),
    /// A deadlock or a serialization failure has rolled the transaction back: repeat it.
    Conflict(String),
    Database(tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for QueueError {
    fn from(error: tokio_postgres::Error) -> Self {
        let (code, text) = match error.as_db_error() {
            Some(error) => (error.code(), error.message().to_string()),
            None => return QueueError::Database(error),
        };
        match (code.code(), code.code().parse()) {
            ("40001" | "40P01", _) => QueueError::Conflict(text),
            (_, Ok(50008)) => QueueError::LeaseLost(text),
            (_, Ok(number @ 50001..=50099)) => QueueError::Refused(number, text),
            _ => QueueError::Database(error),
        }
    }
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            QueueError::LeaseLost(text) => write!(f, "50008 {text}"),
            QueueError::Refused(number, text) => write!(f, "{number} {text}"),
            QueueError::Conflict(text) => f.write_str(text),
            QueueError::Database(error) => match error.as_db_error() {
                Some(error) => error.fmt(f),
                None => error.fmt(f),
            },
        }
    }
}

impl Error for QueueError {}

/// Repeats work that a conflict rolled back. A closure could not lend the client to `send`.
macro_rules! repeated {
    ($work:expr) => {{
        let mut pause = Duration::from_millis(5);
        loop {
            match $work.await {
                Err(QueueError::Conflict(_)) if pause < Duration::from_secs(3) => {
                    sleep(pause).await
                }
                result => break result,
            }
            pause *= 2;
        }
    }};
}

/// A connection, and the receiver of its notifications.
async fn connect(url: &str) -> Result<(Client, Arc<Notify>), QueueError> {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await?;
    let notified = Arc::new(Notify::new());
    let notify = notified.clone();
    // This task does the connection's work; without it no call returns.
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(_) = message {
                notify.notify_one();
            }
        }
    });
    Ok((client, notified))
}

/// Stores the orders and sends the messages about them in one transaction: all or none.
async fn send(client: &mut Client, kind: &str, bodies: &[String]) -> Result<(), QueueError> {
    let transaction = client.transaction().await?; // dropped, it is rolled back
    for body in bodies {
        store(&transaction, body).await?;
        transaction
            .execute("SELECT mq.send($1, $2)", &[&kind, body])
            .await?;
    }
    Ok(transaction.commit().await?)
}

async fn claim(
    client: &Client,
    kind: &str,
    size: i64,
    lease: i64,
) -> Result<Vec<Message>, QueueError> {
    let sql = "SELECT * FROM mq.claim_batch($1, $2, NULL, $3)";
    let rows = client.query(sql, &[&kind, &size, &lease]).await?;
    Ok(rows.iter().map(Message::from).collect())
}

/// Finishes a batch and claims the next one in the same call.
async fn finish(
    client: &Client,
    key: Uuid,
    outcomes: &Option<String>,
    next_size: i64,
) -> Result<Vec<Message>, QueueError> {
    let sql = "SELECT * FROM mq.finish_batch($1, $2, $3)";
    let rows = client.query(sql, &[&key, outcomes, &next_size]).await?;
    Ok(rows.iter().map(Message::from).collect())
}

async fn extend(client: &Client, key: Uuid) -> Result<(), QueueError> {
    client
        .execute("SELECT mq.extend_lease($1)", &[&key])
        .await?;
    Ok(())
}

/// finish_batch's list of outcomes, a line for each message that failed; None if all are done.
fn handle_all(batch: &[Message]) -> Option<String> {
    let outcomes: Vec<String> = batch.iter().filter_map(outcome).collect();
    (!outcomes.is_empty()).then(|| outcomes.join("\n"))
}

fn outcome(message: &Message) -> Option<String> {
    let error = handle(message).err()?;
    eprintln!("message {} failed: {error}", message.id);
    let text = error.to_string().replace('\0', ""); // the databases refuse NUL
    let dead = error.is::<Dead>();
    Some(serde_json::json!({"id": message.id, "error": text, "dead": dead}).to_string())
}

async fn consume(
    client: &Client,
    notified: &Notify,
    kind: &str,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), Anything> {
    let (size, lease) = (setting("BATCH_SIZE", 20), setting("LEASE_SECONDS", 60));
    let third = Duration::from_secs_f64(lease as f64 / 3.0);
    let channel: String = client.query_one("SELECT md5($1)", &[&kind]).await?.get(0);
    client
        .batch_execute(&format!("LISTEN mq_{channel}"))
        .await?;
    while !*stopping.borrow() {
        let mut batch = repeated!(claim(client, kind, size, lease))?;
        if batch.is_empty() {
            wait(client, notified, kind, &mut stopping).await?;
        }
        while let Some(key) = batch.first().map(|message| message.key) {
            // The handlers run in another thread; meanwhile this task extends the lease.
            let mut work = spawn_blocking(move || handle_all(&batch));
            let outcomes = loop {
                tokio::select! {
                    outcomes = &mut work => break outcomes?,
                    _ = sleep(third) => {
                        extend(client, key).await.unwrap_or_else(|error| eprintln!("{error}"));
                    }
                }
            };
            let next_size = if *stopping.borrow() { 0 } else { size };
            batch = match repeated!(finish(client, key, &outcomes, next_size)) {
                Err(error @ QueueError::LeaseLost(_)) => {
                    eprintln!("{error}");
                    Vec::new()
                }
                result => result?,
            };
        }
    }
    Ok(())
}

/// Returns when there may be a message, after two seconds at most.
async fn wait(
    client: &Client,
    notified: &Notify,
    kind: &str,
    stopping: &mut watch::Receiver<bool>,
) -> Result<(), QueueError> {
    // 0: ask senders to notify.
    let sql = "SELECT ready = 1 FROM mq.wait_for_message($1, 0)";
    let ready: bool = client.query_one(sql, &[&kind]).await?.get(0);
    if !ready {
        tokio::select! {
            _ = notified.notified() => {}
            _ = stopping.changed() => {}
            _ = sleep(Duration::from_secs(2)) => {}
        }
    }
    Ok(())
}

/// Becomes true on SIGTERM or SIGINT.
fn stop_signal() -> Result<watch::Receiver<bool>, Anything> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (stop, stopping) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.send_replace(true);
        stop.closed().await; // `changed` fails once the sender is gone
    });
    Ok(stopping)
}

async fn run(url: &str, command: &str, kind: &str, bodies: &[String]) -> Result<(), Anything> {
    let (mut client, notified) = connect(url).await?;
    if command == "consume" {
        return consume(&client, &notified, kind, stop_signal()?).await;
    }
    Ok(repeated!(send(&mut client, kind, bodies))?)
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (url, command, kind) = match (env::var("DATABASE_URL"), arguments.as_slice()) {
        (Ok(url), [command, kind, ..]) if ["send", "consume"].contains(&command.as_str()) => {
            (url, command, kind)
        }
        _ => {
            eprintln!("usage: DATABASE_URL=… rowqueue send TYPE BODY… | consume TYPE");
            return ExitCode::from(2);
        }
    };
    match run(&url, command, kind, &arguments[2..]).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
