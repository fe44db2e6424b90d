-- lock_polled: lock the row of an adopted table until the transaction ends: claims of one table take turns.
-- Arguments:   p_name, p_reader (the reader that claims; NULL: this is no claim), p_milliseconds (how long to try)
-- Returns:     locked: 1, or 0 when another transaction has kept it for so long and p_reader is given
-- Errors:      50005 not_found; without p_reader the engine's lock conflict
-- Transaction: joins the caller's
-- Example:     EXECUTE PROCEDURE mq_lock_polled('orders', 'worker-1', 200) RETURNING_VALUES v_locked;
--
-- It is an UPDATE, not SKIP LOCKED: what another claim has committed since this call began must be seen, and only a write makes
-- the engine (4.0 and later) begin the call again.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_lock_polled (
    p_name mq_name,
    p_reader mq_name,
    p_milliseconds integer
)
RETURNS (
    locked integer
)
AS
DECLARE v_until timestamp;
DECLARE v_seen integer;
BEGIN
    WHILE (locked IS NULL) DO
    BEGIN
        UPDATE mq_polled SET reader = COALESCE(:p_reader, reader) WHERE name = :p_name;
        locked = ROW_COUNT;
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        BEGIN
            v_until = COALESCE(v_until, DATEADD(p_milliseconds MILLISECOND TO mq_utc_now()));
            IF (mq_utc_now() NOT BETWEEN DATEADD(-p_milliseconds MILLISECOND TO v_until) AND v_until) THEN
            BEGIN
                IF (p_reader IS NULL) THEN
                    EXCEPTION;
                locked = -1;
            END
            ELSE
                -- Something that takes longer than another try: the transaction that has the row needs the processor too.
                IN AUTONOMOUS TRANSACTION DO
                    SELECT COUNT(*) FROM mq_polled WHERE name = :p_name INTO v_seen;
        END
    END
    -- Where Firebird 4.0 is about to begin the call again, an UPDATE finds nothing any more.
    IF (locked = 0 AND NOT EXISTS (SELECT * FROM mq_polled WHERE name = :p_name)) THEN
        EXECUTE PROCEDURE mq_raise_error('not_found', 'name: no table is adopted as ' || p_name);
    IF (locked = -1) THEN
        locked = 0;
END^

SET TERM ; ^
