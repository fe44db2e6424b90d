-- has_room: whether the limits of a type let a claim have a message now.
-- Arguments:   p_type, p_max_active, p_rate and p_rate_seconds (the policy)
-- Returns:     room: 1 or 0; token_at: when the next token comes, if one is missing
-- Errors:      none
-- Transaction: reads only, without locks
-- Example:     EXECUTE PROCEDURE mq_has_room('email', 5, 0, 1) RETURNING_VALUES v_room, v_token_at;

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_has_room (
    p_type mq_name,
    p_max_active integer,
    p_rate integer,
    p_rate_seconds integer
)
RETURNS (
    room smallint,
    token_at timestamp
)
AS
DECLARE v_full_at bigint;
DECLARE v_now bigint;
BEGIN
    room = 1;
    -- A claim that finds no place rescues expired ones.
    IF (p_max_active > 0 AND mq_count_held(p_type) >= p_max_active
        AND NOT EXISTS (SELECT * FROM mq_batch WHERE type = :p_type AND lease_until <= mq_utc_now())) THEN
        room = 0;
    IF (p_rate > 0) THEN
    BEGIN
        v_now = mq_microseconds();
        SELECT full_at FROM mq_limited WHERE type = :p_type INTO v_full_at;
        IF (mq_tokens(v_full_at, p_rate, p_rate_seconds, v_now) = 0) THEN
        BEGIN
            room = 0;
            token_at = mq_token_at(v_full_at, p_rate, p_rate_seconds, v_now);
        END
    END
END^

SET TERM ; ^
