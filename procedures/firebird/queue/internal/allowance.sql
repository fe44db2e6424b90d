-- allowance: how many messages the limits of a type allow a claim to take now; other claims of the type get none until this
--            transaction ends.
-- Returns:     allowed: 0 to p_size; also 0 while another claim of the type is in progress
--
-- The lock is a row of mq_stripe, which never changes. Its holder sees what all earlier claims have done. If another claim
-- has held the row since this call began, Firebird 4.0 restarts the call, and on 5.0 try_lock does not get the row.
-- Messages that were finished since then may still count as active.
CREATE OR ALTER PROCEDURE imq_allowance (
    p_type mq_name, p_size integer, p_max_active integer, p_rate integer, p_rate_seconds integer
)
RETURNS (allowed integer)
AS
-- The number of the first row for types, and the number of these rows; the maximum number of expired claims to rescue.
DECLARE c_first integer = 40960;
DECLARE c_rows integer = 4096;
DECLARE c_rescue integer = 20;
DECLARE v_locked integer;
DECLARE v_number bigint; DECLARE v_holder bigint; DECLARE v_active bigint; DECLARE v_rescued bigint;
DECLARE v_now bigint; DECLARE v_latest bigint;
BEGIN
    allowed = 0;
    EXECUTE PROCEDURE imq_try_lock('stripe', c_first + MOD(ABS(HASH(p_type)), c_rows), NULL, NULL)
        RETURNING_VALUES v_locked, v_number, v_holder;
    IF (v_locked IS DISTINCT FROM 1) THEN
        EXIT;
    allowed = p_size;
    IF (p_max_active > 0) THEN
    BEGIN
        v_active = imq_count_held(p_type);
        -- Firebird 3.0 can miss a row that another transaction is changing: count twice and take the larger number.
        IF (v_active < p_max_active AND RDB$GET_CONTEXT('SYSTEM', 'ENGINE_VERSION') STARTING WITH '3.') THEN
            v_active = MAXVALUE(v_active, imq_count_held(p_type));
        v_rescued = 1;
        WHILE (v_active >= p_max_active AND v_rescued > 0) DO
        BEGIN
            EXECUTE PROCEDURE imq_rescue(p_type, c_rescue) RETURNING_VALUES v_rescued;
            IF (v_rescued > 0) THEN
                v_active = imq_count_held(p_type);
        END
        allowed = MAXVALUE(MINVALUE(allowed, p_max_active - v_active), 0);
    END
    IF (p_rate > 0 AND allowed > 0) THEN
    BEGIN
        -- During a rollback the stripe may be free before this row is.
        EXECUTE PROCEDURE imq_try_lock('limited', NULL, p_type, NULL) RETURNING_VALUES v_locked, v_number, v_holder;
        v_now = imq_microseconds();
        allowed = IIF(v_locked = 0, 0, MINVALUE(allowed, imq_tokens(v_number, p_rate, p_rate_seconds, v_now)));
        v_latest = v_now + p_rate_seconds * 1000000;
        IF (v_locked = 1 AND v_number > v_latest) THEN
            -- The clock was set back, or the period is shorter now: the bucket is empty and starts to fill now.
            UPDATE mq_limited SET full_at = :v_latest WHERE type = :p_type;
    END
END
