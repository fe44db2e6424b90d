<?php

// php run.php CODE: runs code in the application, and prints what it returns as JSON.

use App\Jobs\Work;
use App\Orders;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Queue;

require __DIR__ . '/vendor/autoload.php';

$app = require __DIR__ . '/bootstrap/app.php';
$app->make(Illuminate\Contracts\Console\Kernel::class)->bootstrap();
set_exception_handler(function ($error) {
    fwrite(STDERR, get_class($error) . ": {$error->getMessage()}\n");
    exit(1);
});
echo json_encode((fn () => eval('use App\Jobs\Work, App\Orders; use Illuminate\Support\Facades\{DB, Queue}; ' . $argv[1]))());
