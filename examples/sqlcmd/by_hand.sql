-- The life of three messages by hand: send, claim, finish, dead-letter, peek, redrive.
--
-- Usage: sqlcmd -S SERVER -d DATABASE -b -f 65001 -i by_hand.sql     needs the queue in the database (runner apply)
-- A query window works too. The transaction at the end commits the work and the completion of a message together.

PRINT 'Send one message, then a list of two.';
EXEC mq.send 'by.hand', 'one';
EXEC mq.send_batch 'by.hand', N'two
"thr\u0065e"';
GO

PRINT 'Claim two of them for a minute. The batch key proves who holds them.';
EXEC mq.claim_batch 'by.hand', 2, 'by hand', 60;
GO

PRINT 'The first is done. The second can never succeed.';
DECLARE @first bigint, @second bigint, @batch_key uniqueidentifier;
SELECT TOP (1) @batch_key = batch_key FROM mq.message_state WHERE type = 'by.hand' AND consumer = 'by hand';
SELECT @first = MIN(id), @second = MAX(id) FROM mq.message_state WHERE type = 'by.hand' AND batch_key = @batch_key;
EXEC mq.complete @first, @batch_key;
EXEC mq.dead_letter @second, @batch_key, 'no such customer';
GO

PRINT 'One is ready, one is dead.';
EXEC mq.queue_stats 'by.hand';
EXEC mq.peek 'by.hand', @state = 'E';
GO

PRINT 'Redrive the dead letter after a repair. Take both messages in one transaction.';
EXEC mq.redrive_all 'by.hand';
BEGIN TRANSACTION;
EXEC mq.take_batch 'by.hand', 10;
COMMIT;
GO
