<?php

// A job of the tests: the first word of its text says what it does.

namespace App\Jobs;

use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;
use Illuminate\Queue\InteractsWithQueue;
use Illuminate\Support\Facades\DB;
use RuntimeException;

class Work implements ShouldQueue
{
    use Dispatchable;
    use InteractsWithQueue;
    use Queueable;

    public $tries;
    public $backoff;
    public $timeout;

    public function __construct(public string $text, private array $options = [])
    {
        $this->tries = $options['tries'] ?? null;
        $this->backoff = $options['backoff'] ?? null;
        $this->timeout = $options['timeout'] ?? null;
        $this->delay = $options['delay'] ?? null;
    }

    public function rowqueue(): array
    {
        return $this->options['rowqueue'] ?? [];
    }

    public function handle(): void
    {
        self::log('begin', $this->text, $this->attempts());
        [$word, $argument] = explode(' ', $this->text) + ['', ''];
        match ($word) {
            'fail' => throw new RuntimeException($argument),
            'odd' => throw new RuntimeException("a\0b\xff"),
            'give' => $this->fail(new RuntimeException('no such address')),
            'release' => $this->attempts() < (int) $argument ? $this->release(0) : null,
            'sleep' => usleep((int) $argument * 1000),
            'takenback' => $this->takenBack(),
            default => null,
        };
        self::log('end', $this->text, $this->attempts());
    }

    private function takenBack(): void
    {
        DB::transaction(function () {
            DB::table('orders')->insert(['customer' => $this->text]);
            $this->delete();
            if ($this->attempts() === 1) {
                throw new RuntimeException('not yet');
            }
        });
    }

    public function failed($exception): void
    {
        self::log('failed', $this->text, get_class($exception));
    }

    private static function log(...$event): void
    {
        file_put_contents(getenv('HANDLED'), json_encode($event) . "\n", FILE_APPEND | LOCK_EX);
    }
}
