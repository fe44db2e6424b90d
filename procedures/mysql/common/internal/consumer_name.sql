-- consumer_name: a name for a process that passed none: its @mq_application, or else its account, and its connection id.
-- Arguments:   p_name (NULL: make one)
-- Returns:     p_consumer, at most 200 characters

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_consumer_name(
    IN p_name varchar(200) CHARACTER SET utf8mb4, OUT p_consumer varchar(200) CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_application longtext CHARACTER SET utf8mb4 DEFAULT NULLIF(CONVERT(@mq_application USING utf8mb4), '');
    IF v_application IS NULL THEN
        SET v_application = CONVERT(USER() USING utf8mb4);
    END IF;
    SET p_consumer = COALESCE(p_name, CONCAT(LEFT(v_application, 180), '/', CONNECTION_ID()));
END
