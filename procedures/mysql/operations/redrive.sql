-- redrive: retry one dead letter, with its attempts reset to 0.
-- Arguments:   p_id (the message)
-- Returns:     affected: 1; 0 when the message is not a dead letter, or another call is changing it
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED
-- Example:     CALL mq_redrive(17);

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_redrive(
    IN p_id bigint
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE v_type varchar(200) CHARACTER SET utf8mb4;
    DECLARE v_own tinyint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        CALL imq_undo_call(v_own);
        RESIGNAL;
    END;
    IF p_id IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'id: must not be NULL; redrive_all redrives all of a queue');
    END IF;
    CALL imq_begin_call(1, v_own);
    SELECT MAX(e.type) INTO v_type
    FROM (SELECT type FROM mq_dead FORCE INDEX (PRIMARY) WHERE id = p_id FOR UPDATE SKIP LOCKED) AS e;
    IF v_type IS NOT NULL THEN
        DELETE FROM mq_dead WHERE id = p_id;
        CALL imq_put_back(v_type, CONCAT('[[', p_id, ',0]]'));
    END IF;
    CALL imq_end_call(v_own);
    SELECT CAST(v_type IS NOT NULL AS signed) AS affected;
END
