-- write_rows: set the status of rows, or delete them, as listed in mq_polled_write.
-- Returns:     nothing. In mq_polled_write, to_status: D, E, R (done_value, error_value, ready_value), X (delete), L (only
--              check); outcome: W (written), G (gone, or changed by others), X (refused by the table, with the error)
--
-- Each row is written by its own statement, with the rights of the connected user: a row that a trigger or constraint
-- refuses does not stop the others. Of equal rows, each statement changes one.
CREATE OR ALTER PROCEDURE imq_write_rows (p_name mq_name)
AS
DECLARE c_seconds integer = 2;
DECLARE v_kind varchar(1) CHARACTER SET ASCII; DECLARE v_from varchar(1) CHARACTER SET ASCII;
DECLARE v_to varchar(1) CHARACTER SET ASCII; DECLARE v_outcome varchar(1) CHARACTER SET ASCII;
DECLARE v_counted smallint; DECLARE v_delete smallint; DECLARE v_set smallint;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8; DECLARE v_status varchar(130) CHARACTER SET UTF8;
DECLARE v_order varchar(130) CHARACTER SET UTF8; DECLARE v_to_write varchar(130) CHARACTER SET UTF8;
DECLARE v_wanted mq_text; DECLARE v_sorting mq_text; DECLARE v_place mq_text; DECLARE v_declares mq_text;
DECLARE v_parse mq_text; DECLARE v_matches mq_text; DECLARE v_ident mq_text; DECLARE v_content mq_text;
DECLARE v_json mq_text; DECLARE v_write mq_text;
DECLARE v_ready mq_status; DECLARE v_active mq_status; DECLARE v_done mq_status; DECLARE v_dead mq_status;
DECLARE v_id bigint;
DECLARE v_values mq_ident;
DECLARE v_now timestamp; DECLARE v_until timestamp; DECLARE v_again_at timestamp;
DECLARE v_error mq_error;
BEGIN
    IF (NOT EXISTS (SELECT * FROM mq_polled_write WHERE to_status IS NOT NULL AND outcome IS NULL)) THEN
        EXIT;
    EXECUTE PROCEDURE imq_polled_shape(p_name)
        RETURNING_VALUES v_kind, v_counted, v_quoted, v_status, v_order, v_wanted, v_sorting, v_place, v_to_write, v_declares,
            v_parse, v_matches, v_ident, v_content, v_json;
    SELECT IIF(on_complete = 'delete', 1, 0), ready_value, active_value, done_value, error_value
    FROM mq_polled WHERE name = :p_name
    INTO v_delete, v_ready, v_active, v_done, v_dead;
    -- The numbers are deadlock, lock_conflict, update_conflict, random, no_cur_rec, then cancelled and no_priv. There is one
    -- WHEN for all of them: see claim_statements.
    v_write = q'[EXECUTE BLOCK (p_ident mq_ident = ?, p_from mq_status = ?, p_to mq_status = ?, p_do varchar(1) = ?, p_last smallint = ?)
RETURNS (outcome varchar(1), error mq_error)
AS
DECLARE v_ident mq_ident;
DECLARE v_place char(8) CHARACTER SET OCTETS;
DECLARE v_at integer; DECLARE v_end integer; DECLARE v_length integer; DECLARE v_found integer;
DECLARE v_busy smallint = 0;
DECLARE v_set smallint;
DECLARE s_from {"status_type"}; DECLARE s_to {"status_type"}; DECLARE s_is {"status_type"};
{"declares"}
BEGIN
    v_ident = p_ident;
    s_from = p_from;
    s_to = p_to;
    {"parse"}
    v_set = RDB$SET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER', 'begun');
    FOR SELECT r.RDB$DB_KEY FROM {"table"} AS r WHERE {"matches"} INTO v_place DO
    BEGIN
        BEGIN
            FOR SELECT 1 AS found FROM {"table"} AS r WHERE r.RDB$DB_KEY = :v_place AND {"matches"}
                INTO v_found AS CURSOR c
            DO
            BEGIN
                {"update"}
                {"delete"}
                outcome = 'W';
            END
            {"check"}
            WHEN ANY DO
                IF (GDSCODE IN (335544336, 335544345, 335544451, 335544382, 335544348)) THEN
                BEGIN
                    IF (p_last = 1) THEN
                        EXCEPTION;
                    v_busy = 1;
                    outcome = NULL;
                END
                ELSE IF (GDSCODE IN (335544794, 335544352)) THEN
                    EXCEPTION;
                ELSE
                BEGIN
                    outcome = 'X';
                    error = {"error"};
                END
        END
        IF (outcome IS NOT NULL) THEN
            LEAVE;
    END
    IF (outcome IS NULL AND v_busy = 0) THEN
        outcome = 'G';
    v_set = RDB$SET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER', 'given');
    SUSPEND;
END]';
    v_write = REPLACE(v_write, '{"update"}', IIF(v_kind = 'S', q'[IF (p_do NOT IN ('L', 'X')) THEN
                    UPDATE {"table"} SET {"status"} = :s_to WHERE CURRENT OF c;]', ''));
    -- Without deletes the statement must not need the DELETE right.
    v_write = REPLACE(v_write, '{"delete"}', IIF(v_delete = 1,
        'IF (p_do = ''X'') THEN DELETE FROM {"table"} WHERE CURRENT OF c;', ''));
    -- A trigger may have set another status.
    v_write = REPLACE(v_write, '{"check"}', IIF(v_kind = 'S', q'[IF (outcome = 'W' AND p_do NOT IN ('L', 'X')) THEN
            BEGIN
                SELECT r.{"status"} FROM {"table"} AS r WHERE r.RDB$DB_KEY = :v_place INTO s_is;
                IF (s_is IS NOT DISTINCT FROM s_from) THEN
                BEGIN
                    outcome = 'X';
                    error = 'the status did not change; a trigger may have reset it';
                END
            END]', ''));
    v_write = REPLACE(v_write, '{"matches"}',
        v_matches || IIF(v_kind = 'S', ' AND r.{"status"} IS NOT DISTINCT FROM :s_from', ''));
    v_write = REPLACE(REPLACE(v_write, '{"declares"}', v_declares), '{"parse"}', v_parse);
    v_write = imq_fill_names(REPLACE(v_write, '{"error"}', imq_error_expression()), v_quoted, v_status, NULL, NULL);
    FOR SELECT w.id, p.ident, w.from_status, w.to_status
        FROM mq_polled_write AS w
        JOIN mq_polled_row AS p ON p.id = w.id
        WHERE w.to_status IS NOT NULL AND w.outcome IS NULL
        ORDER BY w.id
        INTO v_id, v_values, v_from, v_to
    DO
    BEGIN
        v_outcome = NULL;
        v_until = NULL;
        WHILE (v_outcome IS NULL) DO
        BEGIN
            v_error = NULL;
            v_now = mq_utc_now();
            v_until = COALESCE(v_until, DATEADD(c_seconds SECOND TO v_now));
            -- This limits the wait even if the clock is set back.
            v_until = MINVALUE(v_until, DATEADD(c_seconds SECOND TO v_now));
            v_set = RDB$SET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER', NULL);
            BEGIN
                EXECUTE STATEMENT (v_write) (v_values,
                        CASE v_from WHEN 'A' THEN v_active WHEN 'E' THEN v_dead ELSE v_ready END,
                        CASE v_to WHEN 'D' THEN v_done WHEN 'E' THEN v_dead ELSE v_ready END, v_to, IIF(v_now >= v_until, 1, 0))
                    INTO v_outcome, v_error;
                -- An UPDATE of a row that was changed and committed meanwhile can end the block without a valid result
                -- (decision 8).
                WHEN GDSCODE req_sync, GDSCODE malformed_string, GDSCODE arith_except DO
                    IF (v_now >= v_until OR RDB$GET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER') IS DISTINCT FROM 'begun') THEN
                        EXCEPTION;
            END
            IF (RDB$GET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER') IS DISTINCT FROM 'given') THEN
                v_outcome = NULL;
            v_again_at = DATEADD(1 MILLISECOND TO mq_utc_now());
            WHILE (v_outcome IS NULL AND mq_utc_now() BETWEEN v_now AND v_again_at) DO
                v_error = NULL;
        END
        UPDATE mq_polled_write SET outcome = :v_outcome, error = COALESCE(:v_error, error) WHERE id = :v_id;
    END
    WHEN GDSCODE no_priv DO
    BEGIN
        EXECUTE PROCEDURE imq_require_rights(v_quoted, v_to_write, v_delete);
        EXCEPTION;
    END
END
