-- lock_polled: lock the row of an adopted table until the transaction ends: claims of one table take turns.
-- Arguments:   p_name, p_reader (the reader that claims; NULL: this is no claim), p_milliseconds (how long to try)
-- Returns:     locked: 1, or 0 when another transaction has kept it for so long and p_reader is given
-- Errors:      50005 not_found; without p_reader the engine's lock conflict
-- Transaction: joins the caller's
-- Example:     EXECUTE PROCEDURE mq_lock_polled('orders', 'worker-1', 200) RETURNING_VALUES v_locked;
--
-- A row of mq_stripe is locked first, and the row only if it still has the place that was read: see lock_row. A place that was
-- rolled back and stays would pass over rows for good where the table has no status and keeps its rows. What another claim has
-- committed since this call began must be seen: only a write makes the engine (4.0 and later) begin the call again.

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
DECLARE c_tries integer = 3;
DECLARE v_tries integer = 0;
DECLARE v_again integer;
DECLARE v_place TYPE OF COLUMN mq_polled.place;
DECLARE v_ident mq_ident;
DECLARE v_copies integer;
DECLARE v_until timestamp;
BEGIN
    locked = 0;
    BEGIN
        EXECUTE PROCEDURE mq_lock_stripe('polled', p_name, NULL, p_milliseconds) RETURNING_VALUES v_again;
        WHILE (v_again = 0 AND v_tries < c_tries) DO
        BEGIN
            SELECT place, place_ident, copies FROM mq_polled WHERE name = :p_name INTO v_place, v_ident, v_copies;
            UPDATE mq_polled SET reader = COALESCE(:p_reader, reader)
            WHERE name = :p_name AND place IS NOT DISTINCT FROM :v_place AND place_ident IS NOT DISTINCT FROM :v_ident
                AND copies IS NOT DISTINCT FROM :v_copies;
            locked = ROW_COUNT;
            v_tries = IIF(locked > 0, c_tries, v_tries + 1);
            WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
            BEGIN
                v_until = COALESCE(v_until, DATEADD(p_milliseconds MILLISECOND TO mq_utc_now()));
                IF (mq_utc_now() NOT BETWEEN DATEADD(-p_milliseconds MILLISECOND TO v_until) AND v_until) THEN
                    EXCEPTION;
                EXECUTE PROCEDURE mq_wait_moment;
            END
        END
        WHEN GDSCODE lock_conflict, GDSCODE deadlock, GDSCODE update_conflict, GDSCODE random, GDSCODE no_cur_rec DO
        BEGIN
            IF (p_reader IS NULL) THEN
                EXCEPTION;
            locked = 0;
        END
    END
    -- Where Firebird 4.0 is about to begin the call again, an UPDATE finds nothing any more.
    IF (locked = 0 AND NOT EXISTS (SELECT * FROM mq_polled WHERE name = :p_name)) THEN
        EXECUTE PROCEDURE mq_raise_error('not_found', 'name: no table is adopted as ' || p_name);
END^

SET TERM ; ^
