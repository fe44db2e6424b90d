-- set_result: store a result with a claimed message; it is kept with the archived message.
-- Arguments:   p_id (the message), p_batch_key (the batch key that holds it), p_result (up to 16 MiB)
-- Returns:     affected: 1
-- Errors:      50002 invalid_argument, 50008 lease_lost
-- Transaction: joins the caller's; calls for the same batch wait for each other
-- Example:     SELECT * FROM mq_set_result(17, '6b0c0f0e-9c56-4c3e-9a44-3a5ab3f1a0d2', '{"pages":3}');

CREATE OR ALTER PROCEDURE mq_set_result (
    p_id bigint,
    p_batch_key mq_argument,
    p_result mq_text
)
RETURNS (affected bigint)
AS
DECLARE v_found integer;
DECLARE v_type mq_name;
DECLARE v_on_complete varchar(7) CHARACTER SET ASCII;
BEGIN
    IF (p_id IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'id: must not be NULL');
    EXECUTE PROCEDURE imq_require_key(p_batch_key);
    IF (p_result IS NULL OR OCTET_LENGTH(p_result) > 16777216) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'result: must be a text of up to 16 MiB (16,777,216 bytes)');
    EXECUTE PROCEDURE imq_lock_row('batch', p_batch_key, NULL) RETURNING_VALUES v_found;
    IF (v_found = 1) THEN
        SELECT b.type FROM mq_batch AS b
        WHERE b.batch_key = :p_batch_key
            AND (b.id = :p_id OR EXISTS (SELECT * FROM mq_claimed AS c WHERE c.batch_key = :p_batch_key AND c.id = :p_id))
        INTO v_type;
    IF (v_type IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('lease_lost',
            'batch_key: does not hold message ' || p_id || '; roll back, do not retry, continue with the next claim');
    SELECT on_complete FROM imq_policy(:v_type) INTO v_on_complete;
    IF (v_on_complete <> 'archive') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument',
            'id: the queue keeps no results; call set_queue with on_complete archive');
    UPDATE OR INSERT INTO mq_result (id, result) VALUES (:p_id, :p_result) MATCHING (id);
    affected = 1;
    SUSPEND;
END
