-- drop_schedule: delete a schedule; messages that it has sent stay.
-- Arguments:   p_name (1 to 200 characters)
-- Returns:     affected: 1; 0 when there was none
-- Errors:      50002 invalid_argument
-- Transaction: joins the caller's
-- Example:     CALL mq_drop_schedule('nightly');

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_drop_schedule(IN p_name longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_count bigint;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    CALL imq_require_name('name', p_name, 0);
    CALL imq_begin_call(0, v_own);
    DELETE FROM mq_schedule WHERE name = p_name;
    SET v_count = ROW_COUNT();
    CALL imq_end_call(v_own);
    SELECT v_count AS affected;
END
