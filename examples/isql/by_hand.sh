#!/bin/sh
# The life of three messages by hand: send, claim, finish, dead-letter, peek, redrive.
#
# Usage: by_hand.sh DATABASE [TYPE]     needs Firebird's isql, and the queue in the database (runner apply)
# DATABASE is host:alias or host:/path/of/file.fdb; ISC_USER and ISC_PASSWORD are the login.
set -eu
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: by_hand.sh DATABASE [TYPE]" >&2
    exit 2
fi
isql=$(command -v isql-fb || echo isql) # on Debian, isql is another program
type=$(printf %s "${2:-by.hand}" | sed "s/'/''/g")

exec "$isql" -quiet -bail -charset UTF8 "$1" <<SQL
SET KEEP_TRAN_PARAMS ON;
COMMIT;
SET TRANSACTION READ COMMITTED RECORD_VERSION NO WAIT;
SET LIST ON;

SHELL echo 'Send one message, then a list of two.';
SELECT id FROM mq_send('$type', 'one');
SELECT affected FROM mq_send_batch('$type', 'two
"thr\\u0065e"');
COMMIT;

SHELL echo 'Claim two of them for a minute. The batch key proves who holds them.';
SELECT id, CAST(body AS VARCHAR(200)) AS body, attempt, batch_key, lease_until FROM mq_claim_batch('$type', 2, 'by hand', 60);
COMMIT;

SHELL echo 'The first is done. The second can never succeed.';
SELECT c.affected FROM mq_peek('$type', 'A', 1) AS m LEFT JOIN mq_complete(m.id, m.batch_key) AS c ON 1 = 1;
SELECT f.state FROM mq_peek('$type', 'A', 1) AS m LEFT JOIN mq_dead_letter(m.id, m.batch_key, 'no such customer') AS f ON 1 = 1;
COMMIT;

SHELL echo 'One is ready, one is dead.';
SELECT type, ready, active, dead FROM mq_queue_stats('$type');
SELECT id, CAST(body AS VARCHAR(200)) AS body, attempts, error FROM mq_peek('$type', 'E');

SHELL echo 'Redrive the dead letter after a repair. Take both messages in one transaction.';
SELECT * FROM mq_redrive_all('$type');
COMMIT;
SELECT id, CAST(body AS VARCHAR(200)) AS body, attempt FROM mq_take_batch('$type', 10);
COMMIT;
SQL
