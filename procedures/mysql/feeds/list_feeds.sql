-- list_feeds: list each feed with its consumers and their positions.
-- Arguments:   p_feed (1 to 200 characters; NULL: all feeds)
-- Returns:     feed, table_name, last_position, unpublished (counted up to 10,000, only if p_feed is given and the caller can
--              read its table; otherwise NULL), consumer, feed_position, behind (by how much), moved_at: one row
--              per consumer; a feed without consumers has one row
-- Errors:      50002 invalid_argument
-- Transaction: reads only, without locks
-- Example:     CALL mq_list_feeds('orders');
--
-- A view could run its owner's functions with the rights of the caller. It has no index: if a view has replaced the table,
-- the hint fails before the server evaluates anything.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_list_feeds(IN p_feed longtext CHARACTER SET utf8mb4)
SQL SECURITY INVOKER MODIFIES SQL DATA
BEGIN
    DECLARE v_columns, v_keys, v_places longtext CHARACTER SET utf8mb4;
    DECLARE v_last, v_position, v_unpublished, v_nothing bigint;
    CALL imq_require_name('feed', p_feed, 1);
    IF p_feed IS NOT NULL THEN
        BEGIN
            -- The table was dropped or changed, or the caller may not read it: unpublished stays NULL.
            DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END;
            CALL imq_find_feed(p_feed, NULL, v_last, v_position, v_columns, v_keys, v_places);
            IF JSON_UNQUOTE(JSON_EXTRACT(v_places, '$.index')) <> '' THEN
                CALL imq_run_template(v_places,
                    'SELECT COUNT(*) INTO @mq_n
                    FROM (SELECT 1 FROM {table} AS t {index} WHERE t.{sync} IS NULL LIMIT 10000) AS u', v_nothing);
                SET v_unpublished = @mq_n;
            END IF;
        END;
        SET @mq_n = NULL;
    END IF;
    CALL imq_show_feeds(p_feed, v_unpublished);
END
