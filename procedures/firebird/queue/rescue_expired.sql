-- rescue_expired: make the messages of expired claims ready again, or dead-letter them when their attempts are used up;
--                 also unblock the stuck groups that queue_health reports.
-- Arguments:   p_type (NULL: all types)
-- Returns:     affected: messages made ready or dead-lettered; a call rescues at most 1,000 claims per type
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; skips claims that another call is finishing or
--              extending
-- Example:     EXECUTE PROCEDURE mq_rescue_expired('email');

CREATE OR ALTER PROCEDURE mq_rescue_expired (
    p_type mq_argument = NULL
)
RETURNS (affected bigint)
AS
DECLARE v_type mq_name; DECLARE v_next mq_name;
DECLARE v_rescued bigint;
BEGIN
    EXECUTE PROCEDURE imq_require_name('type', p_type, 1);
    EXECUTE PROCEDURE imq_require_read_committed;
    affected = 0;
    v_type = p_type;
    IF (p_type IS NULL) THEN
        SELECT b.type FROM mq_batch AS b PLAN (b ORDER mq_batch_lease) ORDER BY b.type, b.lease_until ROWS 1 INTO v_type;
    WHILE (v_type IS NOT NULL) DO
    BEGIN
        EXECUTE PROCEDURE imq_rescue(v_type, 1000) RETURNING_VALUES v_rescued;
        affected = affected + v_rescued;
        IF (p_type IS NULL) THEN
        BEGIN
            -- Start at the smallest possible next name: '>' would read all claims of this type. See count_types.
            v_next = IIF(CHAR_LENGTH(v_type) < 200, RPAD(v_type, 199) || '!', v_type);
            v_type = (SELECT b.type FROM mq_batch AS b WHERE b.type >= :v_next AND b.type <> :v_type PLAN (b ORDER mq_batch_lease)
                ORDER BY b.type, b.lease_until ROWS 1);
        END
        ELSE
            v_type = NULL;
    END
    IF (p_type IS NOT NULL) THEN
        EXECUTE PROCEDURE imq_unblock_groups(p_type);
    ELSE
        FOR SELECT q.type FROM mq_queue AS q WHERE q.grouped = 1 INTO v_type DO
            EXECUTE PROCEDURE imq_unblock_groups(v_type);
    SUSPEND;
END
