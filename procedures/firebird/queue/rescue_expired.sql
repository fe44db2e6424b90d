-- rescue_expired: expired claims back to new, or dead when their attempts are used up; groups that are
--              stuck (see queue_health) go on.
-- Arguments:   p_type (NULL: all)
-- Returns:     count of messages; at most 1,000 claims a type and call
-- Errors:      50001 wrong_isolation, 50002 invalid_argument
-- Transaction: joins the caller's, which must be READ COMMITTED and NO WAIT; passes over claims that are being finished or
--              extended at this moment
-- Example:     EXECUTE PROCEDURE mq_rescue_expired('email');

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_rescue_expired (
    p_type mq_argument = NULL
)
RETURNS (
    "COUNT" bigint
)
AS
DECLARE v_type mq_name;
DECLARE v_next mq_name;
DECLARE v_rescued bigint;
DECLARE v_mended integer;
BEGIN
    EXECUTE PROCEDURE mq_require_name('type', p_type, 1);
    EXECUTE PROCEDURE mq_require_read_committed;
    "COUNT" = 0;
    v_type = p_type;
    IF (p_type IS NULL) THEN
        SELECT b.type FROM mq_batch AS b PLAN (b ORDER mq_batch_lease) ORDER BY b.type, b.lease_until ROWS 1 INTO v_type;
    WHILE (v_type IS NOT NULL) DO
    BEGIN
        EXECUTE PROCEDURE mq_rescue(v_type, 1000) RETURNING_VALUES v_rescued;
        "COUNT" = "COUNT" + v_rescued;
        IF (p_type IS NULL) THEN
        BEGIN
            -- The least name after it, as in count_types: '>' would read all claims of this type.
            v_next = IIF(CHAR_LENGTH(v_type) < 200, RPAD(v_type, 199) || '!', v_type);
            v_type = (SELECT b.type FROM mq_batch AS b WHERE b.type >= :v_next AND b.type <> :v_type PLAN (b ORDER mq_batch_lease)
                ORDER BY b.type, b.lease_until ROWS 1);
        END
        ELSE
            v_type = NULL;
    END
    IF (p_type IS NOT NULL) THEN
        EXECUTE PROCEDURE mq_mend_groups(p_type) RETURNING_VALUES v_mended;
    ELSE
        FOR SELECT q.type FROM mq_queue AS q WHERE q.grouped = 1 INTO v_type DO
            EXECUTE PROCEDURE mq_mend_groups(v_type) RETURNING_VALUES v_mended;
    SUSPEND;
END^

SET TERM ; ^
