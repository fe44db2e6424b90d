<?php

// php run.php CODE: runs code in the application, and prints what it returns as JSON.

require __DIR__ . '/vendor/autoload.php';

$app = require __DIR__ . '/bootstrap/app.php';
$app->make(Illuminate\Contracts\Console\Kernel::class)->bootstrap();
set_exception_handler(function ($error) {
    fwrite(STDERR, get_class($error) . ": {$error->getMessage()}\n");
    exit(1);
});
$names = 'use App\Jobs\Work, App\Orders, Illuminate\Support\Facades\DB, Illuminate\Support\Facades\Queue; ';
echo json_encode(eval($names . $argv[1]));
