-- add_feed: store a new feed.
-- Arguments:   p_feed, p_schema, p_table, p_sync (names as the catalog has them), p_keys (a JSON array of names), p_last (the
--              highest number in the table)
-- Returns:     p_created: 1; 0 when the same feed already exists

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_add_feed(
    IN p_feed longtext CHARACTER SET utf8mb4, IN p_schema varchar(64) CHARACTER SET utf8mb4,
    IN p_table varchar(64) CHARACTER SET utf8mb4, IN p_sync varchar(64) CHARACTER SET utf8mb4,
    IN p_keys longtext CHARACTER SET utf8mb4, IN p_last bigint, OUT p_created smallint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_here varchar(64) CHARACTER SET utf8mb4 DEFAULT IF(p_schema = DATABASE(), '', p_schema);
    DECLARE v_found varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_same tinyint;
    DECLARE v_user varchar(128) CHARACTER SET utf8mb4
        DEFAULT LEFT(USER(), CHAR_LENGTH(USER()) - CHAR_LENGTH(SUBSTRING_INDEX(USER(), '@', -1)) - 1);
    CALL imq_require_use(p_schema, p_table, 'Select,Update', v_user);
    SET p_created = 1;
    BEGIN
        DECLARE CONTINUE HANDLER FOR 1062 SET p_created = 0;
        INSERT INTO mq_feed (name, last_number, created_at, table_schema, table_name, sync_column, key_columns, created_by)
        VALUES (p_feed, p_last, UTC_TIMESTAMP(6), v_here, p_table, p_sync, p_keys, v_user);
    END;
    IF NOT p_created THEN
        SELECT name, table_schema = v_here AND table_name = p_table AND sync_column = p_sync
            AND CAST(key_columns AS binary) = CAST(p_keys AS binary)
        INTO v_found, v_same
        FROM mq_feed
        WHERE name = p_feed OR table_schema = v_here AND table_name = p_table AND sync_column = p_sync
        ORDER BY name = p_feed DESC LIMIT 1 FOR UPDATE;
        IF CAST(v_found AS binary) <> CAST(p_feed AS binary) THEN
            CALL imq_raise_error('unsuitable_table', CONCAT('sync_column: already used by feed ', v_found));
        ELSEIF NOT v_same THEN
            CALL imq_raise_error('already_exists', CONCAT('feed: ', p_feed,
                ' exists with other columns or another table: drop_feed first'));
        END IF;
    END IF;
END
