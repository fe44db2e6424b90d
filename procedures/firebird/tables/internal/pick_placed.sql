-- pick_placed: claim the rows after the low-water mark, in a table without a status that keeps its rows.
-- Arguments:   p_name, p_batch_key, p_size, p_quoted, p_order and p_index (the table, its order column and its index,
--              quoted), p_place and p_ident (expressions: the order column as text, the identity), p_take (see pick_new)
-- Transaction: joins the caller's, which has locked the row of mq_polled
CREATE OR ALTER PROCEDURE imq_pick_placed (
    p_name mq_name, p_batch_key mq_key, p_size integer, p_quoted varchar(130) CHARACTER SET UTF8,
    p_order varchar(130) CHARACTER SET UTF8, p_index varchar(130) CHARACTER SET UTF8, p_place mq_text, p_ident mq_text,
    p_take mq_text
)
AS
DECLARE v_now timestamp; DECLARE v_seen_at timestamp;
DECLARE v_late integer; DECLARE v_from_copies integer;
DECLARE v_from mq_ident; DECLARE v_from_ident mq_ident; DECLARE v_settled mq_ident; DECLARE v_ident mq_ident;
DECLARE v_last_ident mq_ident; DECLARE v_text mq_ident;
DECLARE v_statement mq_text;
DECLARE v_place char(8) CHARACTER SET OCTETS;
DECLARE v_past smallint;
DECLARE v_copies integer = 0;
DECLARE v_mine smallint; DECLARE v_set smallint;
DECLARE v_json mq_text; DECLARE v_content mq_text;
DECLARE v_error mq_error;
BEGIN
    v_now = mq_utc_now();
    SELECT late_seconds, place, place_ident, copies FROM mq_polled WHERE name = :p_name
    INTO v_late, v_from, v_from_ident, v_from_copies;
    IF (v_late > 0) THEN
    BEGIN
        -- Store the highest order value, at most once a second. Rows up to the value of late_seconds ago may be claimed.
        SELECT seen_at, place FROM mq_polled_mark WHERE name = :p_name ORDER BY name DESC, seen_at DESC ROWS 1
        INTO v_seen_at, v_settled;
        IF (v_seen_at IS NULL OR v_seen_at NOT BETWEEN DATEADD(-MAXVALUE(1000, CAST(v_late AS bigint) * 100) MILLISECOND TO v_now)
            AND v_now) THEN
        BEGIN
            -- Delete marks in the future: the clock was set back.
            DELETE FROM mq_polled_mark WHERE name = :p_name AND seen_at > :v_now;
            v_statement = REPLACE(q'[EXECUTE BLOCK (p_from mq_ident = ?)
RETURNS (place mq_ident)
AS
DECLARE o_from {"order_type"}; DECLARE o_to {"order_type"};
BEGIN
    o_from = CAST(p_from AS {"order_type"});
    IF (o_from IS NULL) THEN
        SELECT MAX(r.{"order"}) FROM {"table"} AS r INTO o_to;
    ELSE
        SELECT MAX(r.{"order"}) FROM {"table"} AS r WHERE r.{"order"} >= :o_from INTO o_to;
    o_to = COALESCE(o_to, o_from);
    SELECT {"as_text"} FROM (SELECT CAST(:o_to AS {"order_type"}) AS x FROM rdb$database) AS r INTO place;
    SUSPEND;
END]', '{"as_text"}', REPLACE(p_place, 'r.' || p_order, 'r.x'));
            v_statement = imq_fill_names(v_statement, p_quoted, NULL, p_order, NULL);
            EXECUTE STATEMENT (v_statement) (v_settled) INTO v_text;
            IF (v_text IS NOT NULL) THEN
                UPDATE OR INSERT INTO mq_polled_mark (name, seen_at, place) VALUES (:p_name, :v_now, :v_text);
        END
        v_settled = NULL;
        v_seen_at = NULL;
        SELECT seen_at, place FROM mq_polled_mark
        WHERE name = :p_name AND seen_at <= DATEADD(-:v_late SECOND TO :v_now) ORDER BY seen_at DESC ROWS 1
        INTO v_seen_at, v_settled;
        DELETE FROM mq_polled_mark WHERE name = :p_name AND seen_at < :v_seen_at;
        IF (v_settled IS NULL) THEN
            EXIT;
    END
    IF (p_size <= 0) THEN
        EXIT;

    -- Find the last order value first: then only rows up to it are sorted.
    v_statement = q'[EXECUTE BLOCK (p_from mq_ident = ?, p_settled mq_ident = ?, p_size bigint = ?)
RETURNS (place char(8) CHARACTER SET OCTETS, ident mq_ident, order_text mq_ident, past smallint)
AS
DECLARE o_from {"order_type"}; DECLARE o_settled {"order_type"}; DECLARE o_to {"order_type"};
BEGIN
    o_from = CAST(p_from AS {"order_type"});
    o_settled = CAST(p_settled AS {"order_type"});
    SELECT r.{"order"} FROM {"table"} AS r WHERE {"after"} {"up_to_settled"} {"plan"}
    ORDER BY r.{"order"} ROWS :p_size TO :p_size
    INTO o_to;
    IF (o_to IS NULL) THEN
        {"last"}
    FOR SELECT r.RDB$DB_KEY, {"ident"}, {"place"}, {"past"} FROM {"table"} AS r
        WHERE r.{"order"} <= :o_to AND {"not_before"}
        ORDER BY r.{"order"}, 2
        INTO place, ident, order_text, past
    DO
        SUSPEND;
END]';
    v_statement = REPLACE(v_statement, '{"up_to_settled"}', IIF(v_late > 0, 'AND r.{"order"} <= :o_settled', ''));
    v_statement = REPLACE(v_statement, '{"last"}', IIF(v_late > 0, 'o_to = o_settled;',
        'SELECT MAX(r.{"order"}) FROM {"table"} AS r WHERE {"not_before"} INTO o_to;'));
    v_statement = REPLACE(v_statement, '{"after"}', IIF(v_from IS NULL, '1 = 1', 'r.{"order"} > :o_from'));
    v_statement = REPLACE(v_statement, '{"not_before"}', IIF(v_from IS NULL, '1 = 1', 'r.{"order"} >= :o_from'));
    v_statement = REPLACE(v_statement, '{"past"}', IIF(v_from IS NULL, '1', 'IIF(r.{"order"} > :o_from, 1, 0)'));
    v_statement = REPLACE(v_statement, '{"plan"}', IIF(p_index IS NULL, '', 'PLAN (r ORDER {"index"})'));
    v_statement = REPLACE(REPLACE(v_statement, '{"ident"}', p_ident), '{"place"}', p_place);
    v_statement = imq_fill_names(v_statement, p_quoted, NULL, p_order, p_index);
    FOR EXECUTE STATEMENT (v_statement) (v_from, v_settled, CAST(p_size AS bigint)) INTO v_place, v_ident, v_text, v_past
    DO
    BEGIN
        IF (p_size <= 0) THEN
            LEAVE;
        -- Equal rows have the same order value, because the order column is part of their identity.
        v_copies = IIF(v_ident = v_last_ident, v_copies + 1, 1);
        v_last_ident = v_ident;
        IF (v_past = 1 OR v_ident > v_from_ident OR v_ident = v_from_ident AND v_copies > v_from_copies) THEN
        BEGIN
            v_mine = 0;
            v_set = RDB$SET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER', NULL);
            BEGIN
                EXECUTE STATEMENT (p_take) (v_place, v_ident, NULL, 0, NULL) INTO v_mine, v_json, v_content, v_error;
                -- As in write_rows: the block may have returned no valid result.
                WHEN GDSCODE req_sync, GDSCODE malformed_string, GDSCODE arith_except DO
                    IF (RDB$GET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER') IS DISTINCT FROM 'begun') THEN
                        EXCEPTION;
            END
            IF (RDB$GET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER') IS DISTINCT FROM 'given') THEN
                v_mine = 0;
            IF (v_mine > 0) THEN
            BEGIN
                EXECUTE PROCEDURE imq_add_polled_row(p_name, p_batch_key, HASH(v_ident), v_ident, 0, v_json,
                    IIF(v_mine = 1, v_content, NULL), v_error);
                IF (v_mine = 1) THEN
                    p_size = p_size - 1;
            END
            UPDATE mq_polled SET place = :v_text, place_ident = :v_ident, copies = :v_copies WHERE name = :p_name;
        END
    END
END
