<?php

namespace App\Jobs;

use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;
use Illuminate\Queue\InteractsWithQueue;
use Illuminate\Support\Facades\DB;

class SendMail implements ShouldQueue
{
    use Dispatchable;
    use InteractsWithQueue;
    use Queueable;

    public $tries = 3;
    public $backoff = [10, 60];

    public function __construct(public int $order)
    {
    }

    public function handle(): void
    {
        DB::transaction(function () {
            DB::table('orders')->where('id', $this->order)->increment('mailed');
            $this->delete();
        });
    }
}
