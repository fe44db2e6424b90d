-- set_progress: keep how far a handler is, as the step `progress` of its message: {"done":3,"total":10,"note":"page 3"}.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it), p_done (0 to 9,007,199,254,740,991), p_total (the
--              same; NULL: not known), p_note (up to 500 characters; NULL: none)
-- Returns:     affected: 1
-- Errors:      50002 invalid_argument, 50008 lease_lost, 50011 cancelled (nothing is saved)
-- Transaction: as for save_step
-- Example:     SELECT * FROM mq_set_progress(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', 3, 10, 'page 3');
CREATE OR ALTER PROCEDURE mq_set_progress (
    p_id bigint,
    p_batch_key mq_argument,
    p_done bigint,
    p_total bigint = NULL,
    p_note mq_text = NULL
)
RETURNS (affected bigint)
AS
-- The largest number that every reader of JSON takes unchanged.
DECLARE c_most bigint = 9007199254740991;
BEGIN
    IF (p_done IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'done: must not be NULL');
    EXECUTE PROCEDURE imq_require_range('done', p_done, 0, c_most);
    EXECUTE PROCEDURE imq_require_range('total', p_total, 0, c_most);
    IF (CHAR_LENGTH(p_note) > 500) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'note: must be a text of up to 500 characters');
    EXECUTE PROCEDURE mq_save_step(p_id, p_batch_key, 'progress', '{"done":' || p_done || COALESCE(',"total":' || p_total, '')
        || COALESCE(',"note":' || imq_escape_json(x'FE' || CAST(p_note AS blob SUB_TYPE TEXT CHARACTER SET OCTETS) || x'FE'), '')
        || '}') RETURNING_VALUES affected;
    SUSPEND;
END
