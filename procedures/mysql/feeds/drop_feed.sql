-- drop_feed: forget a feed and its consumers; the table and its numbers stay unchanged.
-- Arguments:   p_feed (1 to 200 characters)
-- Returns:     affected: 1; 0 when there is no such feed
-- Errors:      50002 invalid_argument, 50006 unsuitable_table
-- Transaction: joins the caller's; waits for open transactions that have published this feed
-- Example:     CALL mq_drop_feed('orders');
--
-- The rights are needed for a dropped table too: this procedure cannot see whether a table exists. Rights on a
-- table stay when it is dropped.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_drop_feed(IN p_feed longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_count bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('feed', p_feed, 0);
    CALL imq_begin_call(0, v_own);
    SELECT COUNT(*) INTO v_count FROM mq_feed WHERE name = p_feed;
    IF v_count > 0 THEN
        CALL imq_use_feed(p_feed, 'Select,Update');
        DELETE FROM mq_feed WHERE name = p_feed;
        SET v_count = ROW_COUNT();
        DELETE FROM mq_feed_consumer WHERE feed = p_feed;
    END IF;
    CALL imq_end_call(v_own);
    SELECT v_count AS affected;
END
