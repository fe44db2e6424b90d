<?php

return [
    'default' => 'rowqueue',
    'connections' => [
        'rowqueue' => [
            'driver' => 'rowqueue',
            'connection' => null, // the default database
            'queue' => 'default',
            'retry_after' => (int) (getenv('RETRY_AFTER') ?: 90), // seconds; must be longer than a job takes
            'block_for' => 2, // seconds that an idle worker waits for a message
        ],
    ],
    'failed' => ['driver' => 'null'], // failed jobs are dead letters
];
