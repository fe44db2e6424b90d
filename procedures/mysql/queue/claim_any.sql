-- claim_any: claim up to p_size messages of the first type in a list that has some, under one new batch key.
-- Arguments:   p_types (1 to 1,000 types, one per line; a type that contains a line feed or begins with a double quote is
--              written as a JSON string; a type that occurs twice counts once), p_size (1 to 10,000; NULL: 1), p_consumer
--              (NULL: the application name), p_lease_seconds (NULL: the queue's)
-- Returns:     the messages, all of one type, as claim_batch returns them; no rows when claim_batch would return none of any
--              type
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED; never waits for another claim
-- Example:     CALL mq_claim_any('email\nsms', 10, 'worker-1', 60);
--
-- find_types reads a few index entries of each type. Only those that seem to have a message are claimed from, in the order
-- of the list, until one has. To give each type its turn, the caller rotates its list.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_claim_any(
    IN p_types longtext CHARACTER SET utf8mb4,
    IN p_size bigint,
    IN p_consumer longtext CHARACTER SET utf8mb4,
    IN p_lease_seconds bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_consumer, v_type varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_types, v_found, v_later longtext CHARACTER SET utf8mb4;
    DECLARE v_claimed tinyint DEFAULT 0;
    DECLARE i int DEFAULT 0;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_range('size', p_size, 1, 10000);
    CALL imq_require_name('consumer', p_consumer, 1);
    CALL imq_require_range('lease_seconds', p_lease_seconds, 1, 86400);
    CALL imq_begin_call(1, v_own);
    CALL imq_read_types(p_types, v_types);
    CALL imq_find_types(v_types, UTC_TIMESTAMP(6), v_found, v_later);
    CALL imq_consumer_name(p_consumer, v_consumer);
    WHILE NOT v_claimed AND i < JSON_LENGTH(v_found) DO
        SET v_type = JSON_UNQUOTE(JSON_EXTRACT(v_found, CONCAT('$[', i, '][0]')));
        IF i > 0 THEN
            -- In its own transaction, what a claim has locked in vain, such as the limits of a type, is free again.
            CALL imq_end_call(v_own);
            CALL imq_begin_call(1, v_own);
        END IF;
        CALL imq_claim(v_type, COALESCE(p_size, 1), v_consumer, p_lease_seconds, NULL, v_claimed);
        SET i = i + 1;
    END WHILE;
    IF NOT v_claimed THEN
        CALL imq_no_messages();
    END IF;
    CALL imq_end_call(v_own);
END
