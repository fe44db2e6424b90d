<?php
// A worker in PHP: reads messages and answers each with a line of JSON.

function handle(array $message): array
{
    if (str_starts_with($message['body'], 'dead')) {
        return ['error' => 'can never succeed', 'dead' => true];
    }
    if (str_starts_with($message['body'], 'fail')) {
        return ['error' => 'not now', 'retry_after_seconds' => 60];
    }
    return [];
}

while (($line = fgets(STDIN)) !== false) {
    $message = json_decode($line, true, 512, JSON_THROW_ON_ERROR);
    fwrite(STDOUT, json_encode(['id' => $message['id']] + handle($message)) . "\n");
}
