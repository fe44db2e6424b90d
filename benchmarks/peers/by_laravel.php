<?php
// Laravel's database queue with Laravel's worker, from Debian's php-illuminate-queue; the settings of an application's
// config/queue.php are here.
//
// php by_laravel.php laravel URL install | send PER_CALL COUNT | work SETTING | pace COUNT

error_reporting(E_ALL & ~E_DEPRECATED);
foreach (['Container', 'Events', 'Database', 'Bus', 'Queue'] as $part) {
    require_once "/usr/share/php/Illuminate/$part/autoload.php";
}

use Illuminate\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Database\Capsule\Manager as Database;
use Illuminate\Events\Dispatcher;
use Illuminate\Queue\Capsule\Manager as Queues;
use Illuminate\Queue\Worker;
use Illuminate\Queue\WorkerOptions;

[, , $url, $mode] = $argv;
$numbers = array_map('intval', array_slice($argv, 4));
$watching = getenv('PEERS_WATCH') !== false;

function seconds(): float
{
    return hrtime(true) / 1e9;
}

function say(...$words): void
{
    fwrite(STDOUT, implode(' ', $words) . "\n");
}

function ready(): void
{
    say('ready');
    fgets(STDIN);
}

function body(int $number): array
{
    return ['n' => str_pad((string) $number, 10, '0', STR_PAD_LEFT) . str_repeat('abcdefghij', 8) . 'x'];
}

class Tally
{
    public static int $count = 0;
    public static float $first = 0, $last = 0, $told = 0;

    public static function report(): void
    {
        self::$told = seconds();
        say('done', self::$count, sprintf('%.6f', self::$first), sprintf('%.6f', self::$last));
    }
}

class Job
{
    public function fire($job, array $data): void
    {
        global $watching;
        $now = seconds();
        if ($watching) {
            say('seen', (int) substr($data['n'], 0, 10), sprintf('%.6f', $now));
        }
        $job->delete();
        Tally::$last = $now;
        Tally::$first = Tally::$first ?: $now;
        Tally::$count++;
        if ($now - Tally::$told > 0.02) {
            Tally::report();
        }
    }
}

class Thrower implements ExceptionHandler
{
    public function report(Throwable $e)
    {
        fwrite(STDERR, "$e\n");
    }

    public function shouldReport(Throwable $e)
    {
        return true;
    }

    public function render($request, Throwable $e)
    {
        throw $e;
    }

    public function renderForConsole($output, Throwable $e)
    {
        throw $e;
    }
}

$container = new Container();
Container::setInstance($container);
$parts = parse_url($url);
$database = new Database($container);
$database->addConnection([
    'driver' => 'mysql',
    'host' => $parts['host'],
    'port' => $parts['port'],
    'username' => urldecode($parts['user']),
    'password' => urldecode($parts['pass'] ?? ''),
    'database' => ltrim($parts['path'], '/'),
    'charset' => 'utf8mb4',
    'collation' => 'utf8mb4_unicode_ci',
    'options' => [PDO::MYSQL_ATTR_SSL_VERIFY_SERVER_CERT => false],
]);
$database->setAsGlobal();
$container->instance('db', $database->getDatabaseManager());
$container->instance('events', new Dispatcher($container));
$queues = new Queues($container);
$queues->addConnection([
    'driver' => 'database', 'connection' => null, 'table' => 'jobs', 'queue' => 'default', 'retry_after' => 90,
]);
$queue = $queues->getConnection();

if ($mode === 'install') {
    $database->schema()->create('jobs', function ($table) { // as `artisan queue:table` makes it
        $table->bigIncrements('id');
        $table->string('queue')->index();
        $table->longText('payload');
        $table->unsignedTinyInteger('attempts');
        $table->unsignedInteger('reserved_at')->nullable();
        $table->unsignedInteger('available_at');
        $table->unsignedInteger('created_at');
    });
} elseif ($mode === 'pace') {
    ready();
    for ($number = 0; $number < $numbers[0]; $number++) {
        usleep(random_int(150_000, 350_000));
        $queue->push('Job', body($number));
        say('sent', $number, sprintf('%.6f', seconds()));
    }
} elseif ($mode === 'send') {
    [$per_call, $total] = $numbers;
    $some = array_map('body', range(0, 999));
    $queue->push('Job', $some[0]); // connects
    $database->table('jobs')->delete();
    ready();
    Tally::$first = seconds();
    for ($start = 0; $start < $total; $start += $per_call) {
        if ($per_call === 1) {
            $queue->push('Job', $some[$start % 1000]);
        } else {
            // bulk() gives the same data to many jobs; the statement is also one INSERT of many rows.
            $queue->bulk(array_fill(0, $per_call, 'Job'), $some[$start % 1000]);
        }
    }
    Tally::$count = $total;
    Tally::$last = seconds();
    Tally::report();
} else {
    $worker = new Worker($queues->getQueueManager(), $container['events'], new Thrower(), fn () => false);
    $container['events']->listen(Illuminate\Queue\Events\WorkerStopping::class, fn () => Tally::report());
    ready();
    // Arguments: name, backoff, memory, timeout, sleep, tries, force, stop-when-empty. In seconds, and MB.
    $worker->daemon('default', 'default', new WorkerOptions('default', 0, 512, 60, $watching ? 0.1 : 3, 1, false, !$watching));
}
