<?php

// rowqueue as a queue of Laravel. Copy this file to app/Providers, and add the provider to bootstrap/providers.php; before
// Laravel 11, to config/app.php. The queue's other classes are in this file too: it is loaded before they are used.

namespace App\Providers;

use Illuminate\Container\Container;
use Illuminate\Contracts\Queue\ClearableQueue;
use Illuminate\Contracts\Queue\Job as JobContract;
use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Database\Connection;
use Illuminate\Database\ConnectionResolverInterface;
use Illuminate\Database\DetectsConcurrencyErrors;
use Illuminate\Database\DetectsLostConnections;
use Illuminate\Queue\Connectors\ConnectorInterface;
use Illuminate\Queue\Events\JobExceptionOccurred;
use Illuminate\Queue\Jobs\Job;
use Illuminate\Queue\Queue;
use Illuminate\Support\ServiceProvider;
use PDO;
use PDOException;
use Throwable;

class RowqueueServiceProvider extends ServiceProvider
{
    public function boot(): void
    {
        $this->callAfterResolving('queue', function ($queues) {
            $queues->addConnector('rowqueue', fn () => new RowqueueConnector($this->app['db']));
        });
        // The worker releases a job without its exception; the message records both.
        $this->app['events']->listen(JobExceptionOccurred::class, function ($event) {
            if ($event->job instanceof RowqueueJob) {
                $event->job->exception = $event->exception;
            }
        });
    }
}

class RowqueueConnector implements ConnectorInterface
{
    public function __construct(private ConnectionResolverInterface $databases)
    {
    }

    public function connect(array $config)
    {
        return new RowqueueQueue(
            $this->databases->connection($config['connection'] ?? null),
            $config['queue'] ?? 'default',
            $config['retry_after'] ?? 90,
            $config['block_for'] ?? 0,
            $config['after_commit'] ?? false,
        );
    }
}

class RowqueueQueue extends Queue implements QueueContract, ClearableQueue
{
    use DetectsConcurrencyErrors;
    use DetectsLostConnections;

    // Laravel decides when a job has failed. This is the limit for one that it releases forever.
    private const MAX_ATTEMPTS = 1000;
    private const BATCH = 10000; // the most messages of one send_batch
    private const TRIES = 6; // of a call while the database is restarted: three seconds

    /** A job is reserved for $lease seconds. An idle worker waits up to $blockFor seconds for the next one. */
    public function __construct(
        private Connection $database,
        private string $default,
        private int $lease,
        private int $blockFor,
        bool $dispatchAfterCommit,
    ) {
        $this->dispatchAfterCommit = $dispatchAfterCommit;
    }

    // ---- Sending ----

    public function push($job, $data = '', $queue = null)
    {
        return $this->enqueue($job, $data, $queue, null);
    }

    public function later($delay, $job, $data = '', $queue = null)
    {
        return $this->enqueue($job, $data, $queue, $delay);
    }

    private function enqueue($job, $data, $queue, $delay)
    {
        $payload = $this->createPayload($job, $this->getQueue($queue), $data, $delay);
        $send = fn ($payload, $queue) => $this->pushRaw($payload, $queue, $this->options($job, $delay));
        return $this->enqueueUsing($job, $payload, $queue, $delay, $send);
    }

    /** $options: those of `send_with`. Returns the id of the message. */
    public function pushRaw($payload, $queue = null, array $options = [])
    {
        $options += ['max_attempts' => self::MAX_ATTEMPTS];
        [$sent] = $this->call('send_with', $this->getQueue($queue), $payload, json_encode($options));
        return $sent->id;
    }

    /** All jobs or none, with one call for those with the same options. */
    public function bulk($jobs, $data = '', $queue = null)
    {
        $queue = $this->getQueue($queue);
        $groups = [];
        foreach ((array) $jobs as $job) {
            $delay = is_object($job) ? $job->delay ?? null : null;
            $options = $this->options($job, $delay) + ['max_attempts' => self::MAX_ATTEMPTS];
            $groups[json_encode($options)][] = $this->createPayload($job, $queue, $data, $delay);
        }
        $this->database->transaction(function () use ($groups, $queue) {
            foreach ($groups as $options => $payloads) {
                if (isset(json_decode($options, true)['dedup_key'])) {
                    array_map(fn ($payload) => $this->call('send_with', $queue, $payload, $options), $payloads);
                    continue;
                }
                foreach (array_chunk($payloads, self::BATCH) as $chunk) { // JSON is on one line
                    $this->call('send_batch', $queue, implode("\n", $chunk), $options);
                }
            }
        });
    }

    /** A job's method `rowqueue` returns more options of its message, such as ['group_key' => 'customer-7']. */
    private function options($job, $delay): array
    {
        $options = is_object($job) && method_exists($job, 'rowqueue') ? $job->rowqueue() : [];
        return $delay === null ? $options : ['delay_seconds' => max(0, $this->secondsUntil($delay))] + $options;
    }

    // ---- Receiving ----

    public function pop($queue = null, $index = 0)
    {
        $queue = $this->getQueue($queue);
        $consumer = gethostname() . ':' . getmypid();
        $claim = fn () => $this->call('claim_batch', $queue, 1, $consumer, $this->lease)[0] ?? null;
        $message = $claim();
        if (!$message && $this->blockFor > 0 && $index === 0) { // a wait for the first of several queues is enough
            $this->wait($queue);
            $message = $claim();
        }
        return $message ? new RowqueueJob($this->container, $this, $message, $this->connectionName, $queue) : null;
    }

    /** Returns when there may be a message, or after `block_for` seconds. */
    private function wait(string $queue): void
    {
        if ($this->database->getDriverName() !== 'pgsql') {
            $this->call('wait_for_message', $queue, $this->blockFor);
            return;
        }
        $this->database->unprepared('LISTEN mq_' . md5($queue));
        if (!$this->call('wait_for_message', $queue, 0)[0]->ready) {
            $pdo = $this->database->getPdo();
            $notify = method_exists($pdo, 'getNotify') ? 'getNotify' : 'pgsqlGetNotify'; // PHP 8.4 renames it
            $pdo->$notify(PDO::FETCH_ASSOC, $this->blockFor * 1000);
        }
    }

    // ---- Looking ----

    public function size($queue = null)
    {
        return $this->count($queue, 'ready', 'delayed', 'active', 'expired');
    }

    public function pendingSize($queue = null)
    {
        return $this->count($queue, 'ready');
    }

    public function delayedSize($queue = null)
    {
        return $this->count($queue, 'delayed');
    }

    public function reservedSize($queue = null)
    {
        return $this->count($queue, 'active', 'expired');
    }

    public function creationTimeOfOldestPendingJob($queue = null)
    {
        $seconds = $this->stats($queue)['oldest_ready_seconds'] ?? null;
        return $seconds === null ? null : time() - (int) $seconds;
    }

    private function count($queue, string ...$columns): int
    {
        return array_sum(array_intersect_key($this->stats($queue), array_flip($columns)));
    }

    private function stats($queue): array
    {
        return (array) ($this->call('queue_stats', $this->getQueue($queue))[0] ?? []);
    }

    /** Deletes the jobs that no worker has reserved. The database user needs the role mq_operator. */
    public function clear($queue)
    {
        $deleted = 0;
        do {
            [$purged] = $this->call('purge', $this->getQueue($queue), 'N', null, self::BATCH);
            $deleted += $purged->affected;
        } while ($purged->affected > 0);
        return $deleted;
    }

    public function getQueue($queue): string
    {
        $queue = $queue instanceof \BackedEnum ? $queue->value : ($queue instanceof \UnitEnum ? $queue->name : $queue);
        $queue = $queue ?: $this->default;
        return method_exists($this, 'resolveQueue') ? $this->resolveQueue($queue) : $queue; // Laravel 13 forwards queues
    }

    // ---- The procedures ----

    /** The rows of a procedure, all of whose arguments are given. Joins the transaction that is open. */
    public function call(string $procedure, mixed ...$arguments): array
    {
        for ($tries = 1;; $tries++) {
            try {
                return $this->rows($procedure, $arguments);
            } catch (PDOException $error) {
                $isLost = $this->isLost($error);
                $again = $isLost || $this->causedByConcurrencyError($error);
                if (!$again || $tries === self::TRIES || $this->database->transactionLevel() > 0) {
                    throw $error;
                }
                usleep(random_int(50_000, 100_000) * 2 ** ($tries - 1));
                if ($isLost) {
                    $this->database->reconnect();
                }
            }
        }
    }

    private function rows(string $procedure, array $arguments): array
    {
        $places = implode(', ', array_fill(0, count($arguments), '?'));
        $isPostgreSQL = $this->database->getDriverName() === 'pgsql';
        $sql = $isPostgreSQL ? "SELECT * FROM mq.$procedure($places)" : "CALL mq_$procedure($places)";
        $call = $this->database->getPdo()->prepare($sql);
        $call->execute($arguments);
        $rows = $call->fetchAll(PDO::FETCH_OBJ);
        while (!$isPostgreSQL && $call->nextRowset()) {
            // A late error is reported only here.
        }
        return $rows;
    }

    private function isLost(PDOException $error): bool
    {
        [$state, $number] = ($error->errorInfo ?? []) + ['', 0];
        return preg_match('/^(08|57P)/', (string) $state) || in_array($number, [1053, 1927, 2002, 2006, 2013, 4031])
            || $this->causedByLostConnection($error);
    }
}

class RowqueueJob extends Job implements JobContract
{
    public ?Throwable $exception = null;

    public function __construct(
        Container $container,
        private RowqueueQueue $rowqueue,
        private object $message,
        string $connectionName,
        string $queue,
    ) {
        $this->container = $container;
        $this->connectionName = $connectionName;
        $this->queue = $queue;
    }

    /** Retried after so many seconds. The attempt counts. */
    public function release($delay = 0)
    {
        parent::release($delay);
        $this->finish('fail', $this->error('released'), max(0, $this->secondsUntil($delay)));
    }

    /** Done, or a dead letter if it has failed. */
    public function delete()
    {
        parent::delete();
        if ($this->hasFailed()) {
            $this->finish('dead_letter', $this->error('failed'));
        } else {
            $this->finish('complete');
        }
    }

    public function fail($e = null)
    {
        $this->exception = $e instanceof Throwable ? $e : $this->exception;
        parent::fail($e);
    }

    private function finish(string $procedure, mixed ...$more): void
    {
        $this->rowqueue->call($procedure, $this->message->id, $this->message->batch_key, ...$more);
    }

    private function error(string $otherwise): string
    {
        $text = $this->exception ? get_class($this->exception) . ': ' . $this->exception->getMessage() : $otherwise;
        return mb_scrub(str_replace("\0", '', $text), 'UTF-8');
    }

    public function attempts()
    {
        return (int) $this->message->attempt;
    }

    public function getJobId()
    {
        return $this->message->id;
    }

    public function getRawBody()
    {
        return $this->message->body;
    }
}
