-- pick_waiting: claim rows of a polling table whose retry is due.
-- Arguments:   p_name, p_batch_key, p_size, p_kind and p_counted (see polled_shape), p_active and p_ready (the status
--              values), p_find (a statement that finds rows by identity and status), p_take (a statement that takes one row:
--              see pick_rows)
-- Returns:     still_wanted: p_size minus the rows claimed
-- Transaction: joins the caller's, which has locked the row of mq_polled
CREATE OR ALTER PROCEDURE imq_pick_waiting (
    p_name mq_name, p_batch_key mq_key, p_size integer, p_kind varchar(1) CHARACTER SET ASCII, p_counted smallint,
    p_active mq_status, p_ready mq_status, p_find mq_text, p_take mq_text
)
RETURNS (still_wanted integer)
AS
DECLARE v_now timestamp;
DECLARE v_max integer; DECLARE v_held integer;
DECLARE v_consumer mq_name;
DECLARE v_id bigint; DECLARE v_hash bigint;
DECLARE v_ident mq_ident;
DECLARE v_attempts smallint; DECLARE v_active smallint;
DECLARE v_status mq_status;
DECLARE v_place char(8) CHARACTER SET OCTETS;
-- -1: gone, 0: locked, 1: claimed, 2: refused by the table, 3: without attempts left.
DECLARE v_mine smallint;
DECLARE v_set smallint;
DECLARE v_json mq_text;
DECLARE v_content mq_text;
DECLARE v_error mq_error;
BEGIN
    still_wanted = p_size;
    v_now = mq_utc_now();
    SELECT max_attempts, consumer FROM mq_polled WHERE name = :p_name INTO v_max, v_consumer;
    FOR SELECT p.id, p.ident, p.ident_hash, p.attempts, p.active
        FROM mq_polled_row AS p
        WHERE p.name = :p_name AND p.state = 'N' AND p.run_at <= :v_now
        PLAN (p ORDER mq_polled_row_due)
        ORDER BY p.name, p.state, p.run_at, p.id
        INTO v_id, v_ident, v_hash, v_attempts, v_active
    DO
    BEGIN
        IF (still_wanted <= 0) THEN
            LEAVE;
        v_mine = -1;
        v_status = IIF(v_active = 1 AND p_active IS NOT NULL, p_active, p_ready);
        v_held = 0;
        IF (p_counted = 1 AND p_kind <> 'K') THEN
            -- Of equal rows, skip as many as others hold.
            SELECT COUNT(*) FROM mq_polled_row AS p
            WHERE p.name = :p_name AND p.ident_hash = :v_hash AND p.ident = :v_ident AND p.active = :v_active
                AND (p.state = 'A' OR p.state = 'E' AND :p_kind = 'D')
            INTO v_held;
        FOR EXECUTE STATEMENT (p_find) (v_ident, v_status) INTO v_place DO
        BEGIN
            IF (v_held > 0) THEN
                v_held = v_held - 1;
            ELSE
            BEGIN
                v_mine = IIF(v_attempts >= v_max, 3, 0);
                IF (v_mine = 0) THEN
                BEGIN
                    v_set = RDB$SET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER', NULL);
                    BEGIN
                        EXECUTE STATEMENT (p_take) (v_place, v_ident, p_active, IIF(v_active = 0 AND p_active IS NOT NULL, 1, 0), v_status)
                            INTO v_mine, v_json, v_content, v_error;
                        -- As in write_rows: the block may have returned no valid result.
                        WHEN GDSCODE req_sync, GDSCODE malformed_string, GDSCODE arith_except DO
                            IF (RDB$GET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER') IS DISTINCT FROM 'begun') THEN
                                EXCEPTION;
                    END
                    IF (RDB$GET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER') IS DISTINCT FROM 'given') THEN
                        v_mine = 0;
                END
                IF (v_mine > 0) THEN
                    LEAVE;
            END
        END
        IF (v_mine = -1) THEN
            DELETE FROM mq_polled_row WHERE id = :v_id;
        ELSE IF (v_mine = 3) THEN
            INSERT INTO mq_polled_write (id, kind, retry, error)
            SELECT id, 'F', -1, error FROM mq_polled_row WHERE id = :v_id;
        ELSE IF (v_mine > 0) THEN
        BEGIN
            UPDATE mq_polled_row
            SET state = 'A', batch_key = :p_batch_key, attempts = attempts + 1, consumer = :v_consumer,
                active = IIF(:v_mine = 1 AND :p_active IS NOT NULL, 1, active)
            WHERE id = :v_id;
            IF (v_mine = 1) THEN
            BEGIN
                UPDATE OR INSERT INTO mq_polled_taken (id, content) VALUES (:v_id, :v_content);
                still_wanted = still_wanted - 1;
            END
            ELSE
                INSERT INTO mq_polled_write (id, kind, error) VALUES (:v_id, 'F', :v_error);
        END
    END
END
