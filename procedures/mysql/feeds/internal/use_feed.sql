-- use_feed: refuse a caller without these rights on the table of a feed.
-- Arguments:   p_feed, p_rights (a list: Select, Update)

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_use_feed(
    IN p_feed longtext CHARACTER SET utf8mb4, IN p_rights varchar(40) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_schema, v_table varchar(64) CHARACTER SET utf8mb4;
    DECLARE v_maker varchar(128) CHARACTER SET utf8mb4;
    SELECT IF(table_schema = '', DATABASE(), table_schema), table_name, created_by INTO v_schema, v_table, v_maker
    FROM mq_feed WHERE name = p_feed;
    IF v_table IS NULL THEN
        CALL imq_raise_error('not_found', CONCAT('feed: there is no feed ', p_feed));
    END IF;
    CALL imq_require_use(v_schema, v_table, p_rights, v_maker);
END
