-- claim: claim messages of a type, of a ring round-robin, unless it is paused.
-- Arguments:   p_consumer (NULL: a generated name), p_lease_seconds (NULL: the policy's), p_ring (1: raise wrong_kind for a
--              queue that is no ring) and p_after_id (see claim_ring)
-- Returns:     max_attempts: the queue's; a NULL batch_key when nothing is ready, no limit allows it, or the queue is paused
--
-- The callers read the messages themselves: passing a row through one more procedure costs as much as reading it.
CREATE OR ALTER PROCEDURE imq_claim (
    p_type mq_name, p_size integer, p_consumer mq_name, p_lease_seconds integer, p_ring smallint = 0, p_after_id bigint = NULL
)
RETURNS (batch_key mq_key, lease_until timestamp, max_attempts integer)
AS
DECLARE v_paused smallint; DECLARE v_ring smallint; DECLARE v_grouped smallint; DECLARE v_fair smallint;
DECLARE v_attempt smallint;
DECLARE v_seconds integer; DECLARE v_max_active integer; DECLARE v_rate integer; DECLARE v_rate_seconds integer;
DECLARE v_place integer;
DECLARE v_now timestamp;
DECLARE v_id bigint;
DECLARE v_n integer = 0;
BEGIN
    SELECT paused, ring, grouped, fair, COALESCE(:p_lease_seconds, lease_seconds), max_active, rate, rate_seconds,
        max_attempts
    FROM imq_policy(:p_type)
    INTO v_paused, v_ring, v_grouped, v_fair, v_seconds, v_max_active, v_rate, v_rate_seconds, max_attempts;
    IF (p_ring > v_ring) THEN
        EXECUTE PROCEDURE imq_raise_error('wrong_kind', 'type: ' || p_type || ' is not a ring; use mq_set_option('''
            || p_type || ''', ''ring'', ''1'')');
    IF (v_paused = 1) THEN
        EXIT;
    IF (v_max_active + v_rate > 0) THEN
        EXECUTE PROCEDURE imq_allowance(p_type, p_size, v_max_active, v_rate, v_rate_seconds) RETURNING_VALUES p_size;
    IF (p_size = 0) THEN
        EXIT;
    IF (v_ring = 1) THEN
        EXECUTE PROCEDURE imq_claim_ring(p_type, p_size, imq_consumer_name(p_consumer), p_after_id)
            RETURNING_VALUES batch_key, v_n, v_id, v_attempt;
    ELSE
        FOR SELECT id, attempt, n FROM imq_pick(:p_type, :p_size, :v_grouped, :v_fair, 0) INTO v_id, v_attempt, v_place DO
        BEGIN
            -- Create the key only now: a random number costs more than a scan of an empty queue.
            IF (v_n = 0) THEN
                batch_key = LOWER(UUID_TO_CHAR(GEN_UUID()));
            v_n = v_n + 1;
            -- The only message is stored in mq_batch itself.
            IF (p_size > 1) THEN
            BEGIN
                INSERT INTO mq_claimed (batch_key, id, n, attempt) VALUES (:batch_key, :v_id, :v_place, :v_attempt);
                v_id = NULL;
                v_attempt = NULL;
            END
        END
    IF (v_n > 0) THEN
    BEGIN
        IF (v_rate > 0) THEN
            EXECUTE PROCEDURE imq_spend(p_type, v_n, v_rate, v_rate_seconds);
        v_now = mq_utc_now();
        lease_until = DATEADD(v_seconds SECOND TO v_now);
        INSERT INTO mq_batch (batch_key, claimed_at, lease_until, lease_seconds, type, consumer, id, attempt)
        VALUES (:batch_key, :v_now, :lease_until, :v_seconds, :p_type, imq_consumer_name(:p_consumer), :v_id, :v_attempt);
    END
END
