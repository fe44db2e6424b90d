-- release_consumer: release everything that a consumer holds, in all queues, as release_batch does.
-- Arguments:   p_consumer (1 to 200 characters: the name under which it claims)
-- Returns:     affected: messages released; 0 when the name holds none
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; waits up to two seconds for calls that are
--              finishing a batch, and skips batches that they still hold then
-- Example:     SELECT * FROM mq_release_consumer('worker-1');
CREATE OR ALTER PROCEDURE mq_release_consumer (
    p_consumer mq_argument
)
RETURNS (affected bigint)
AS
DECLARE c_milliseconds integer = 2000;
DECLARE v_until timestamp;
DECLARE v_key mq_key;
DECLARE v_found bigint; DECLARE v_released bigint;
DECLARE v_held smallint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('consumer', p_consumer, 0);
    EXECUTE PROCEDURE imq_require_read_committed;
    affected = 0;
    v_until = DATEADD(c_milliseconds MILLISECOND TO mq_utc_now());
    -- Sorted: all keys are read before the first batch is changed.
    FOR SELECT b.batch_key FROM mq_batch AS b WHERE b.consumer = :p_consumer ORDER BY b.claimed_at, b.batch_key INTO v_key DO
    BEGIN
        EXECUTE PROCEDURE imq_lock_row('batch', v_key, NULL,
            MINVALUE(MAXVALUE(DATEDIFF(MILLISECOND FROM mq_utc_now() TO v_until), 0), c_milliseconds)) RETURNING_VALUES v_found;
        IF (v_found = 1) THEN
            EXECUTE PROCEDURE imq_is_held(v_key) RETURNING_VALUES v_held;
        -- The messages of a handler's open transaction that has saved a step stay.
        IF (v_found = 1 AND v_held = 0) THEN
        BEGIN
            EXECUTE PROCEDURE mq_release_batch(v_key) RETURNING_VALUES v_released;
            affected = affected + v_released;
        END
    END
    SUSPEND;
END
