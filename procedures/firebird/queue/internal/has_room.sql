-- has_room: whether the limits of a type allow a claim to take a message now.
-- Arguments:   p_type, p_max_active, p_rate and p_rate_seconds (the policy)
-- Returns:     room: 1 or 0; next_at: the latest time at which a limit allows the next message, as far as known (next token
--              or end of a lease); NULL when one is allowed now
-- Transaction: reads only, without locks
CREATE OR ALTER PROCEDURE imq_has_room (p_type mq_name, p_max_active integer, p_rate integer, p_rate_seconds integer)
RETURNS (room smallint, next_at timestamp)
AS
DECLARE v_full_at bigint; DECLARE v_now bigint;
DECLARE v_lease timestamp;
BEGIN
    IF (p_rate > 0) THEN
    BEGIN
        v_now = imq_microseconds();
        SELECT full_at FROM mq_limited WHERE type = :p_type INTO v_full_at;
        -- A bucket whose full_at is more than one period ahead does not count as empty here: the next claim corrects it.
        -- See tokens.
        IF (v_full_at <= v_now + p_rate_seconds * 1000000 AND imq_tokens(v_full_at, p_rate, p_rate_seconds, v_now) = 0) THEN
            next_at = imq_token_at(v_full_at, p_rate, p_rate_seconds, v_now);
    END
    IF (p_max_active > 0 AND imq_count_held(p_type) >= p_max_active) THEN
    BEGIN
        SELECT b.lease_until FROM mq_batch AS b WHERE b.type = :p_type
        PLAN (b ORDER mq_batch_lease)
        ORDER BY b.type, b.lease_until
        ROWS 1
        INTO v_lease;
        -- A claim that finds no free place rescues expired batches.
        IF (v_lease > mq_utc_now()) THEN
            next_at = MAXVALUE(v_lease, COALESCE(next_at, v_lease));
    END
    room = IIF(next_at IS NULL, 1, 0);
END
