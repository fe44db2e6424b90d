<?php

// A producer and a consumer in PHP: copy this file, then change store() and handle().
//
// Usage:  DATABASE_URL=postgresql://… php queue.php send TYPE BODY…     (or mysql://, mariadb://, firebird://)
//         php queue.php consume TYPE      BATCH_SIZE and LEASE_SECONDS change the defaults; SIGTERM ends it
//
// `send` stores rows of the application and sends the messages in one transaction: all of it happens or nothing.

declare(strict_types=1);

const IDLE_SECONDS = 2; // messages become due and leases run out without a notification
const FIREBIRD_BEGIN = 'SET TRANSACTION READ COMMITTED RECORD_VERSION NO WAIT';
const FIREBIRD_ERROR = "/^exception \d+ MQ_(\d+) (.*?)(?: At \w+ '|$)/s";

define('SIZE', (int) (getenv('BATCH_SIZE') ?: 20));
define('LEASE_SECONDS', (int) (getenv('LEASE_SECONDS') ?: 60));

/** One of the contract's errors: its code is 50002, its message `invalid_argument: …`. */
class QueueError extends RuntimeException
{
}

/** Thrown by a handler: dead-letter the message now. */
class GiveUp extends RuntimeException
{
}

// ---- The application's own part ----

function store(PDO $db, string $body): void
{
    $db->prepare('INSERT INTO orders (body) VALUES (?)')->execute([$body]);
}

function handle(array $message): void
{
    if (str_starts_with($message['body'], 'raise ')) {
        throw new RuntimeException(substr($message['body'], 6));
    }
    match ($message['body']) {
        'retry' => (int) $message['attempt'] === 1 ? throw new RuntimeException('not yet') : null,
        'dead' => throw new GiveUp('no such address'),
        'slow' => sleep(4),
        default => null,
    };
    $line = json_encode([$message['id'], $message['body']], JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE);
    file_put_contents(getenv('HANDLED'), "$line\n", FILE_APPEND | LOCK_EX);
}

// ---- The queue ----

class Queue
{
    public readonly PDO $db;
    private string $engine; // pgsql, mysql or firebird
    private bool $isOpen = false; // a transaction

    public function __construct(string $url)
    {
        $part = array_map(fn ($text) => is_string($text) ? rawurldecode($text) : $text, parse_url($url));
        [$this->engine, $port] = match ($part['scheme']) {
            'postgresql', 'postgres' => ['pgsql', 5432],
            'firebird' => ['firebird', 3050],
            default => ['mysql', 3306],
        };
        $port = $part['port'] ?? $port;
        $name = substr($part['path'], 1);
        parse_str($part['query'] ?? '', $query);
        $dsn = match ($this->engine) {
            'pgsql' => "pgsql:host=$part[host];port=$port;dbname=$name",
            'mysql' => "mysql:host=$part[host];port=$port;dbname=$name;charset=utf8mb4",
            // A session has only the role that it names.
            'firebird' => "firebird:dbname=$part[host]/$port:$name;charset=UTF8;role=" . ($query['role'] ?? ''),
        };
        // The driver for Firebird would commit after each statement, also in a transaction.
        $options = $this->engine === 'firebird' ? [PDO::ATTR_AUTOCOMMIT => 0, PDO::ATTR_CASE => PDO::CASE_LOWER] : [];
        $this->db = new PDO($dsn, $part['user'] ?? null, $part['pass'] ?? null, $options); // it throws, since PHP 8
        if ($this->engine === 'mysql') {
            // For claims in a handler's transaction.
            $this->db->exec('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
        }
    }

    /** The rows of a procedure, all of whose arguments are given. */
    public function call(string $procedure, mixed ...$arguments): array
    {
        $call = fn () => $this->rows($procedure, $arguments);
        return $this->engine === 'firebird' && !$this->isOpen ? $this->once($call) : $call();
    }

    private function rows(string $procedure, array $arguments): array
    {
        $places = implode(', ', array_fill(0, count($arguments), '?'));
        $start = ['pgsql' => 'SELECT * FROM mq.', 'mysql' => 'CALL mq_', 'firebird' => 'SELECT * FROM mq_'][$this->engine];
        try {
            $call = $this->db->prepare("$start$procedure($places)");
            $call->execute($arguments);
            $rows = $call->fetchAll(PDO::FETCH_ASSOC);
            while ($this->engine === 'mysql' && $call->nextRowset()) {
                // A late error is reported only here.
            }
        } catch (PDOException $error) {
            throw $this->translated($error);
        }
        if ($this->engine === 'firebird' && array_key_exists('body', $rows[0] ?? [])) {
            // It reads an empty BLOB as null.
            $rows = array_map(fn ($row) => ['body' => $row['body'] ?? ''] + $row, $rows);
        }
        return $rows;
    }

    private function translated(PDOException $error): Exception
    {
        [$state, $number, $text] = ($error->errorInfo ?? []) + ['', 0, ''];
        if ($this->engine === 'pgsql') {
            $number = (int) $state;
        } elseif ($this->engine === 'firebird' && preg_match(FIREBIRD_ERROR, (string) $text, $found)) {
            [, $number, $text] = $found;
        }
        if ($number < 50001 || $number > 50099) {
            return $error;
        }
        return new QueueError(preg_replace(['/^ERROR: +/', '/\nCONTEXT:.*/s'], '', $text), (int) $number, $error);
    }

    /** Deadlocks and conflicts roll the transaction back: the whole `work` is repeated. */
    public function repeat(callable $work): mixed
    {
        for ($tries = 1;; $tries++) {
            try {
                return $work();
            } catch (PDOException $error) {
                [$state, $number, $text] = ($error->errorInfo ?? []) + ['', 0, ''];
                $again = in_array($state, ['40001', '40P01']) || in_array($number, [1020, 1205, 1213])
                    || $this->engine === 'firebird' && preg_match('/^(deadlock|lock conflict)/', (string) $text);
                if (!$again || $tries === 10) {
                    throw $error;
                }
                usleep(random_int(0, 20000 * 2 ** $tries));
            }
        }
    }

    public function transaction(callable $work): void
    {
        $this->repeat(fn () => $this->once($work));
    }

    /** `work` in a transaction. */
    private function once(callable $work): mixed
    {
        // PDO's own methods would begin a SNAPSHOT that waits for locks.
        $isFirebird = $this->engine === 'firebird';
        $isFirebird ? $this->db->exec(FIREBIRD_BEGIN) : $this->db->beginTransaction();
        $this->isOpen = true;
        try {
            $result = $work();
            $isFirebird ? $this->db->exec('COMMIT WORK') : $this->db->commit(); // the driver refuses a statement of one word
            return $result;
        } catch (Throwable $error) {
            try {
                $isFirebird ? $this->db->exec('ROLLBACK WORK') : $this->db->rollBack();
            } catch (PDOException) {
                // COMMIT has failed, or the connection is lost.
            }
            throw $error;
        } finally {
            $this->isOpen = false;
        }
    }

    public function listen(string $type): void
    {
        if ($this->engine === 'pgsql') {
            $this->db->exec('LISTEN mq_' . md5($type));
        }
    }

    /** Returns when there may be a message or the time is over. */
    public function wait(string $type): void
    {
        if ($this->engine === 'firebird') {
            usleep(500_000); // the server cannot wait, and PDO has no events
            return;
        }
        $seconds = $this->engine === 'pgsql' ? 0 : IDLE_SECONDS;
        [$answer] = $this->repeat(fn () => $this->call('wait_for_message', $type, $seconds));
        if ($this->engine === 'pgsql' && !$answer['ready']) {
            $this->db->pgsqlGetNotify(PDO::FETCH_ASSOC, IDLE_SECONDS * 1000);
        }
    }
}

/** A process that extends the lease of the batch at hand while a handler runs. It ends with its parent. */
class Heartbeat
{
    private $socket;

    public function __construct(string $url)
    {
        [$this->socket, $other] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        if (pcntl_fork() !== 0) {
            fclose($other);
            return;
        }
        fclose($this->socket);
        $queue = new Queue($url);
        pcntl_signal(SIGTERM, SIG_IGN); // a process manager signals the group: the batch at hand is finished first
        pcntl_signal(SIGINT, SIG_IGN);
        for ($key = '';;) {
            [$read, $write, $except] = [[$other], null, null];
            if (stream_select($read, $write, $except, 0, intdiv(LEASE_SECONDS * 1_000_000, 3))) {
                $line = fgets($other);
                if ($line === false) {
                    exit(0);
                }
                $key = trim($line);
            } elseif ($key !== '') {
                $queue->repeat(fn () => $queue->call('extend_lease', $key, LEASE_SECONDS));
            }
        }
    }

    /** Extends the lease of this batch from now on; '': of none. */
    public function hold(string $key): void
    {
        if (!@fwrite($this->socket, "$key\n")) {
            throw new RuntimeException('the process that extends leases has ended');
        }
    }
}

function send(Queue $queue, string $type, array $bodies): void
{
    $queue->transaction(function () use ($queue, $type, $bodies) {
        foreach ($bodies as $body) {
            store($queue->db, $body);
            $queue->call('send', $type, $body);
        }
    });
}

/** A line of finish_batch's list of outcomes, or null if the message is done. */
function attempt(array $message): ?string
{
    try {
        handle($message);
        return null;
    } catch (Throwable $error) {
        $text = str_replace("\0", '', $error->getMessage());
        fwrite(STDERR, "message $message[id] failed (attempt $message[attempt]): $text\n");
        $outcome = ['id' => (int) $message['id'], 'error' => $text, 'dead' => $error instanceof GiveUp];
        return json_encode($outcome, JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE);
    }
}

function consume(string $url, string $type): void
{
    $stopping = false;
    pcntl_async_signals(true);
    $heartbeat = new Heartbeat($url); // before the connection: a child must not share it
    $queue = new Queue($url);
    foreach ([SIGTERM, SIGINT] as $signal) { // after the connection: Firebird's library sets its own
        pcntl_signal($signal, function () use (&$stopping) {
            $stopping = true;
        });
    }
    $queue->listen($type);
    $consumer = gethostname() . ':' . getmypid();
    while (!$stopping) {
        $batch = $queue->repeat(fn () => $queue->call('claim_batch', $type, SIZE, $consumer, LEASE_SECONDS));
        if (!$batch) {
            $queue->wait($type);
        }
        while ($batch) {
            $key = $batch[0]['batch_key'];
            $heartbeat->hold($key);
            $outcomes = implode("\n", array_filter(array_map('attempt', $batch)));
            $heartbeat->hold('');
            try {
                $next = $stopping ? 0 : SIZE;
                $batch = $queue->repeat(fn () => $queue->call('finish_batch', $key, $outcomes ?: null, $next));
            } catch (QueueError $error) {
                if ($error->getCode() !== 50008) {
                    throw $error;
                }
                fwrite(STDERR, "50008 {$error->getMessage()}\n"); // the lease was lost: other consumers have its messages
                $batch = [];
            }
        }
    }
}

$url = getenv('DATABASE_URL');
[, $command, $type] = $argv + [null, '', ''];
$bodies = array_slice($argv, 3);
if (!$url || $type === '' || !($command === 'consume' || ($command === 'send' && $bodies))) {
    fwrite(STDERR, "usage: DATABASE_URL=… php queue.php send TYPE BODY… | consume TYPE\n");
    exit(2);
}
try {
    $command === 'send' ? send(new Queue($url), $type, $bodies) : consume($url, $type);
} catch (RuntimeException $error) { // PDO's exceptions too
    $number = $error instanceof QueueError ? $error->getCode() . ' ' : '';
    fwrite(STDERR, "queue.php: $number{$error->getMessage()}\n");
    exit(1);
}
