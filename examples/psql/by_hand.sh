#!/bin/sh
# The life of three messages by hand: send, claim, finish, dead-letter, peek, redrive.
#
# Usage: by_hand.sh URL [TYPE]     needs psql, and the queue in the database (runner apply)
set -eu
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: by_hand.sh URL [TYPE]" >&2
    exit 2
fi

exec psql "$1" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --set=type="${2:-by.hand}" <<'SQL'
\echo Send one message, then a list of two.
SELECT * FROM mq.send(:'type', 'one');
SELECT * FROM mq.send_batch(:'type', E'two\n"thr\\u0065e"');

\echo Claim two of them for a minute. The batch key proves who holds them.
SELECT id, body, attempt, lease_until FROM mq.claim_batch(:'type', 2, 'by hand', 60);
SELECT DISTINCT batch_key FROM mq.peek(:'type', 'A') WHERE consumer = 'by hand' \gset
SELECT min(id) AS first, max(id) AS second FROM mq.peek(:'type', 'A') WHERE batch_key = :'batch_key' \gset

\echo The first is done. The second can never succeed.
SELECT * FROM mq.complete(:first, :'batch_key');
SELECT * FROM mq.dead_letter(:second, :'batch_key', 'no such customer');

\echo One is ready, one is dead.
SELECT type, ready, active, dead FROM mq.queue_stats(:'type');
SELECT id, body, attempts, error FROM mq.peek(:'type', 'E');

\echo Redrive the dead letter after a repair. Take both messages in one transaction.
SELECT * FROM mq.redrive_all(:'type');
BEGIN;
SELECT id, body, attempt FROM mq.take_batch(:'type', 10);
COMMIT;
SQL
