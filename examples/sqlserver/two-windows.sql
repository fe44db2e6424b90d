-- two-windows.sql: what only two sessions on a real SQL Server can show about rowqueue: which calls wait for which.
--
-- Run first-things.sql before. Open two query windows, A and B, in the same database. Do each step in the window that its
-- comment names. In B a wait becomes error 1222 after two seconds. Do all steps twice: with READ_COMMITTED_SNAPSHOT off and
-- on; on Azure SQL and 2025 with OPTIMIZED_LOCKING on too. Whatever differs from what is expected is worth a report.

-- B, first of all
SET LOCK_TIMEOUT 2000;
GO

-- 1. Claims skip what another claim holds. With optimized locking this is the most important check of all.
-- A
BEGIN TRANSACTION;
EXEC mq.claim_batch N'ft', 500;
-- B. Expected: no error 1222; other ids than in A.
EXEC mq.claim_batch N'ft', 500;
EXEC mq.wait_for_message N'ft', 0;
EXEC mq.peek N'ft';
EXEC mq.find_messages N'ft', N'{"group_key": "none"}';
EXEC mq.queue_stats;
-- A
ROLLBACK TRANSACTION;
GO

-- 2. The same while B runs calls of operators.
-- A
BEGIN TRANSACTION;
EXEC mq.claim_batch N'ft-limits', 100;
-- B. Expected: no error 1222.
EXEC mq.claim_batch N'ft-limits', 100;
EXEC mq.purge N'ft', N'E';
EXEC mq.list_errors N'ft';
EXEC mq.redrive_all N'ft';
EXEC mq.rescue_expired;
-- A
ROLLBACK TRANSACTION;
GO

-- 3. A change of one queue stops no other queue.
-- A
BEGIN TRANSACTION;
EXEC mq.pause N'zz-ft';
-- B. Expected: no error 1222.
EXEC mq.send N'ft', N'x';
EXEC mq.claim_batch N'ft', 1;
EXEC mq.publish N'ft.a', N'x';
EXEC mq.set_queue N'ft-limits-2', N'{"max_active": 5}';
EXEC mq.set_queue N'ft-ordered-2', N'{"ordered": 1}';
-- A
ROLLBACK TRANSACTION;
GO

-- 4. Senders of different keys.
-- A
BEGIN TRANSACTION;
EXEC mq.send_message N'ft', N'x', @dedup_key = N'ft-1';
-- B. Expected: no error 1222.
EXEC mq.send_message N'ft', N'x', @dedup_key = N'ft-2';
-- A
ROLLBACK TRANSACTION;
GO

-- 5. A place under max_active is free when the finish commits.
-- A. Put the batch key of the claim into the call of complete_batch.
EXEC mq.set_queue N'ft-max', N'{"max_active": 1}';
EXEC mq.send N'ft-max', N'a';
EXEC mq.send N'ft-max', N'b';
EXEC mq.claim_batch N'ft-max', 1;
BEGIN TRANSACTION;
EXEC mq.complete_batch N'00000000-0000-0000-0000-000000000000';
-- B. Expected: no row and no error 1222.
EXEC mq.claim_batch N'ft-max', 1;
-- A
COMMIT TRANSACTION;
-- B. Expected: one row.
EXEC mq.claim_batch N'ft-max', 1;
GO

-- 6. Feeds: two consumers of one feed.
-- A
BEGIN TRANSACTION;
EXEC mq.advance_feed N'ft-feed', N'ft-c1', 10;
-- B. Expected: no error 1222.
EXEC mq.advance_feed N'ft-feed', N'ft-c2', 1;
EXEC mq.advance_feed N'ft-feed', N'ft-c2', 2;
EXEC mq.fetch_feed N'ft-feed', N'ft-c2', 10;
-- A
ROLLBACK TRANSACTION;
GO

-- 7. Reports: two consumers of one queue.
-- A
BEGIN TRANSACTION;
EXEC mq.report_consumer N'ft-r1', N'ft', N'{"completed": 1}';
-- B. Expected: no error 1222.
EXEC mq.report_consumer N'ft-r2', N'ft', N'{"completed": 1}';
-- A
ROLLBACK TRANSACTION;
GO

-- 8. Polling tables: two batches of one table finish at the same time.
-- A and B, each
EXEC mq.claim_rows N'ft-orders', 100;
-- A, with its batch key
BEGIN TRANSACTION;
EXEC mq.finish_rows N'00000000-0000-0000-0000-000000000000';
-- B, with its batch key. Expected: no error 1222 and no 1205.
EXEC mq.finish_rows N'00000000-0000-0000-0000-000000000000';
EXEC mq.claim_rows N'ft-orders', 50;
-- A
ROLLBACK TRANSACTION;
GO

-- 9. Reading calls in a SERIALIZABLE transaction.
-- A
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
BEGIN TRANSACTION;
EXEC mq.get_result 1;
EXEC mq.list_schedules;
EXEC mq.list_bindings;
-- B. Expected: no error 1222.
EXEC mq.claim_batch N'ft', 1;
EXEC mq.send N'ft', N'x';
EXEC mq.set_schedule N'ft-other', N'ft-topic', N'30 3 * * *', N'x';
EXEC mq.bind_topic N'ft.b', N'ft-topic';
-- A
ROLLBACK TRANSACTION;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
GO

-- 10. A deadlock on the application lock of a group, which is not the row of any table.
-- A. Put the batch key of each claim into the calls of complete_batch.
EXEC mq.send_message N'ft-ordered', N'x', @group_key = N'ft-a';
EXEC mq.send_message N'ft-ordered', N'x', @group_key = N'ft-b';
EXEC mq.claim_batch N'ft-ordered', 1;
-- B, which gets the other group
EXEC mq.claim_batch N'ft-ordered', 1;
-- A, with its key
BEGIN TRANSACTION;
EXEC mq.complete_batch N'00000000-0000-0000-0000-000000000000';
-- B, with its key
BEGIN TRANSACTION;
EXEC mq.complete_batch N'00000000-0000-0000-0000-000000000000';
-- A: the group of B, which waits; put its group's name into the resource if it is ft-a.
EXEC mq_internal.wait_for_lock 'group', N'ft-ordered', N'ft-b';
-- B: the group of A. Expected, in one of the two windows: error 51205 within some seconds, and a transaction that can only
-- be rolled back.
EXEC mq_internal.wait_for_lock 'group', N'ft-ordered', N'ft-a';
-- A and B
ROLLBACK TRANSACTION;
GO

-- 11. A change of dead_stops_group waits for a message that dies in an open transaction.
-- A. Put the id and the batch key of the claim into the call of dead_letter.
EXEC mq.set_queue N'ft-ordered-2', N'{"ordered": 1}';
EXEC mq.send_message N'ft-ordered-2', N'x', @group_key = N'ft-a';
EXEC mq.claim_batch N'ft-ordered-2', 1;
BEGIN TRANSACTION;
EXEC mq.dead_letter 0, N'00000000-0000-0000-0000-000000000000';
-- B. Expected: error 1222.
EXEC mq.set_option N'ft-ordered-2', N'dead_stops_group', N'1';
-- A
COMMIT TRANSACTION;
-- B. Expected: no error; 1 row.
EXEC mq.set_option N'ft-ordered-2', N'dead_stops_group', N'1';
SELECT group_key, id FROM mq.group_lock WHERE type = N'ft-ordered-2';
GO
