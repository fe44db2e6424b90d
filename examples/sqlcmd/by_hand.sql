-- The life of three messages by hand: sent, claimed, finished, failed, looked at, sent round again.
--
-- Usage: sqlcmd -S SERVER -d DATABASE -b -f 65001 -i by_hand.sql     needs the queue in the database (runner apply)
-- A query window does too. The transaction at the end shows how the work and the end of a message are one.

PRINT 'Send one message, then a list of two.';
EXEC mq.send 'by.hand', 'one';
EXEC mq.send_batch 'by.hand', N'two
"thr\u0065e"';
GO

PRINT 'Claim two of them for a minute, and keep what came. The batch key is the proof of who holds them.';
DECLARE @batch TABLE (
    id bigint, type nvarchar(400), body nvarchar(max), headers nvarchar(max), priority int, group_key nvarchar(400),
    dedup_key nvarchar(400), attempt int, created_at datetime2(7), source nvarchar(400), batch_key uniqueidentifier, lease_until datetime2(7)
);
INSERT INTO @batch EXEC mq.claim_batch 'by.hand', 2, 'by hand', 60;
SELECT id, body, attempt, batch_key, lease_until FROM @batch ORDER BY id;

PRINT 'The first is done. The second failed and shall not be tried again.';
DECLARE @first bigint, @second bigint, @batch_key nvarchar(36);
SELECT @first = MIN(id), @second = MAX(id), @batch_key = MIN(CAST(batch_key AS nvarchar(36))) FROM @batch;
EXEC mq.complete @first, @batch_key;
EXEC mq.fail @second, @batch_key, 'no such customer', -1;
GO

PRINT 'One is ready, one is dead.';
EXEC mq.queue_stats 'by.hand';
EXEC mq.peek 'by.hand', @state = 'E';
GO

PRINT 'Repaired: the dead one goes round again. Take both and be done with them in one transaction.';
EXEC mq.redrive 'by.hand';
BEGIN TRANSACTION;
EXEC mq.take_batch 'by.hand', 10;
COMMIT;
GO
