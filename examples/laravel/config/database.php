<?php

$url = parse_url(getenv('DATABASE_URL') ?: 'postgresql://localhost/shop');
$isPostgreSQL = str_starts_with($url['scheme'], 'postgres');

return [
    'default' => 'shop',
    'connections' => [
        'shop' => [
            'driver' => $isPostgreSQL ? 'pgsql' : 'mysql',
            'host' => $url['host'] ?? 'localhost',
            'port' => $url['port'] ?? ($isPostgreSQL ? 5432 : 3306),
            'database' => substr($url['path'], 1),
            'username' => rawurldecode($url['user'] ?? ''),
            'password' => rawurldecode($url['pass'] ?? ''),
            'charset' => $isPostgreSQL ? 'utf8' : 'utf8mb4',
            'isolation_level' => 'READ COMMITTED', // MySQL and MariaDB: for jobs that are deleted in a transaction
        ],
    ],
];
