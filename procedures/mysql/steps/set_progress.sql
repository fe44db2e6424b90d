-- set_progress: keep how far a handler is, as the step `progress` of its message: {"done":3,"total":10,"note":"page 3"}.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it), p_done (0 to 9,007,199,254,740,991), p_total (the
--              same; NULL: not known), p_note (up to 500 characters; NULL: none)
-- Returns:     affected: 1
-- Errors:      50002 invalid_argument, 50008 lease_lost, 50011 cancelled (nothing is saved)
-- Transaction: as for save_step
-- Example:     CALL mq_set_progress(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 3, 10, 'page 3');
CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE mq_set_progress(
    IN p_id bigint,
    IN p_batch_key longtext CHARACTER SET utf8mb4,
    IN p_done bigint,
    IN p_total bigint,
    IN p_note longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    -- The largest number that every reader of JSON keeps exactly.
    DECLARE c_most bigint DEFAULT 9007199254740991;
    IF p_done IS NULL THEN
        CALL imq_raise_error('invalid_argument', 'done: must not be NULL');
    END IF;
    CALL imq_require_range('done', p_done, 0, c_most);
    CALL imq_require_range('total', p_total, 0, c_most);
    IF CHAR_LENGTH(p_note) > 500 THEN
        CALL imq_raise_error('invalid_argument', 'note: must be a text of up to 500 characters');
    END IF;
    -- The server's JSON functions would add blanks and sort the names.
    CALL mq_save_step(p_id, p_batch_key, 'progress', CONCAT('{"done":', p_done, COALESCE(CONCAT(',"total":', p_total), ''),
        COALESCE(CONCAT(',"note":', JSON_QUOTE(p_note)), ''), '}'));
END
