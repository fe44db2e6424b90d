-- advance_sequence: reserve numbers of a named counter, without gaps.
-- Arguments:   p_name (1 to 200 characters), p_size (1 to 1,000,000,000; NULL: 1)
-- Returns:     first_number, last_number: the first and the last reserved number
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's and locks the counter until it ends; other calls wait; a rollback gives the numbers back
-- Example:     CALL mq_advance_sequence('invoice', NULL);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_advance_sequence(
    IN p_name longtext CHARACTER SET utf8mb4,
    IN p_size bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_size bigint DEFAULT COALESCE(p_size, 1);
    DECLARE v_last bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('name', p_name, 0);
    CALL imq_require_range('size', p_size, 1, 1000000000);
    CALL imq_begin_call(0, v_own);
    INSERT INTO mq_counter (name, last_number) VALUES (p_name, v_size)
    ON DUPLICATE KEY UPDATE last_number = last_number + v_size;
    -- A locking read: a snapshot may return an older number.
    SELECT last_number INTO v_last FROM mq_counter WHERE name = p_name FOR UPDATE;
    CALL imq_end_call(v_own);
    SELECT v_last - v_size + 1 AS first_number, v_last AS last_number;
END
