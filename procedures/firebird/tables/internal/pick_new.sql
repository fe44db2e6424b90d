-- pick_new: claim rows of a polling table that have no entry.
-- Arguments:   p_name, p_batch_key, p_size, p_kind (see polled_shape; A: rows at active_value), p_counted, p_status (of the
--              rows to claim), p_active (their new status; NULL: none), p_walk (a statement that finds rows, with a start
--              and a status as parameters), p_take (a statement that takes one row: see pick_rows), p_from (where to start)
-- Returns:     still_wanted: p_size minus the rows claimed; last_text: the order column of the last row
-- Transaction: joins the caller's, which has locked the row of mq_polled
CREATE OR ALTER PROCEDURE imq_pick_new (
    p_name mq_name, p_batch_key mq_key, p_size integer, p_kind varchar(1) CHARACTER SET ASCII, p_counted smallint,
    p_status mq_status, p_active mq_status, p_walk mq_text, p_take mq_text, p_from mq_ident
)
RETURNS (still_wanted integer, last_text mq_ident)
AS
DECLARE v_active smallint; DECLARE v_free smallint; DECLARE v_mine smallint; DECLARE v_set smallint;
DECLARE v_place char(8) CHARACTER SET OCTETS;
DECLARE v_ident mq_ident; DECLARE v_text mq_ident;
DECLARE v_hash bigint;
DECLARE v_seen integer;
DECLARE v_json mq_text; DECLARE v_content mq_text;
DECLARE v_error mq_error;
BEGIN
    still_wanted = p_size;
    -- The active flag of entries for rows at this status.
    v_active = IIF(p_kind = 'A', 1, 0);
    DELETE FROM mq_polled_seen;
    IF (p_counted = 1) THEN
        -- Of equal rows, skip as many as have entries. Read the entries before the rows: 3.0 reads each row as committed at
        -- that moment, and a row finished in between would make a claimed equal row look free.
        FOR SELECT p.ident_hash, p.ident FROM mq_polled_row AS p
            WHERE p.name = :p_name AND (:p_kind = 'D' OR p.active = :v_active AND (:p_kind = 'A' OR p.state <> 'E'))
            INTO v_hash, v_ident
        DO
        BEGIN
            UPDATE mq_polled_seen SET copies = copies + 1 WHERE ident_hash = :v_hash AND ident = :v_ident;
            IF (ROW_COUNT = 0) THEN
                INSERT INTO mq_polled_seen (ident_hash, ident, copies) VALUES (:v_hash, :v_ident, 1);
        END
    FOR EXECUTE STATEMENT (p_walk) (p_from, p_status) INTO v_place, v_ident, v_text DO
    BEGIN
        IF (still_wanted <= 0) THEN
            LEAVE;
        v_hash = HASH(v_ident);
        v_free = 1;
        IF (p_counted = 0) THEN
        BEGIN
            -- The old entry of a dead row that was set back to ready does not count. For a row at active_value, an entry
            -- that waits at ready_value does not count either.
            IF (EXISTS (
                SELECT * FROM mq_polled_row AS p
                WHERE p.name = :p_name AND p.ident_hash = :v_hash AND p.ident = :v_ident
                    AND (:p_kind = 'D' OR p.active = 1 OR :p_kind = 'S' AND p.state <> 'E')
            )) THEN
                v_free = 0;
        END
        ELSE
        BEGIN
            v_seen = 0;
            SELECT copies FROM mq_polled_seen WHERE ident_hash = :v_hash AND ident = :v_ident INTO v_seen;
            IF (v_seen > 0) THEN
            BEGIN
                v_free = 0;
                UPDATE mq_polled_seen SET copies = copies - 1 WHERE ident_hash = :v_hash AND ident = :v_ident;
            END
        END
        IF (v_free = 1) THEN
        BEGIN
            v_mine = 0;
            v_set = RDB$SET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER', NULL);
            BEGIN
                EXECUTE STATEMENT (p_take) (v_place, v_ident, p_active, IIF(p_active IS NULL, 0, 1), p_status)
                    INTO v_mine, v_json, v_content, v_error;
                -- As in write_rows: the block may have returned no valid result.
                WHEN GDSCODE req_sync, GDSCODE malformed_string, GDSCODE arith_except DO
                    IF (RDB$GET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER') IS DISTINCT FROM 'begun') THEN
                        EXCEPTION;
            END
            IF (RDB$GET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER') IS DISTINCT FROM 'given') THEN
                v_mine = 0;
            IF (v_mine > 0) THEN
            BEGIN
                IF (p_kind <> 'D' AND p_counted = 0) THEN
                    DELETE FROM mq_polled_row WHERE name = :p_name AND ident_hash = :v_hash AND ident = :v_ident;
                EXECUTE PROCEDURE imq_add_polled_row(p_name, p_batch_key, v_hash, v_ident,
                    IIF(p_kind = 'A' OR p_active IS NOT NULL AND v_mine = 1, 1, 0), v_json,
                    IIF(v_mine = 1, v_content, NULL), v_error);
                IF (v_mine = 1) THEN
                    still_wanted = still_wanted - 1;
                last_text = v_text;
            END
        END
    END
END
