-- claim_statements: return the statements that claim rows of a polling table.
-- Arguments:   p_name (of the polling table)
-- Returns:     kind, counted, quoted, status, order_column, place, ident and to_write (see polled_shape), claim_index
--              (quoted), and the texts of the statements: see the comments on the columns
--
-- They run with the rights of the connected user only.
CREATE OR ALTER PROCEDURE imq_claim_statements (
    p_name mq_name
)
RETURNS (
    kind varchar(1) CHARACTER SET ASCII,
    counted smallint,
    quoted varchar(130) CHARACTER SET UTF8,
    status varchar(130) CHARACTER SET UTF8,
    order_column varchar(130) CHARACTER SET UTF8,
    place mq_text,
    ident mq_text,
    to_write varchar(130) CHARACTER SET UTF8,
    claim_index varchar(130) CHARACTER SET UTF8,
    -- takes one row: see below
    take mq_text,
    -- finds the rows of an identity at a status
    find mq_text,
    -- reads rows by the index; the caller fills {"condition"} with a WHERE
    walk mq_text,
    -- counts the rows at a status
    count_rows mq_text
)
AS
DECLARE v_wanted mq_text; DECLARE v_sorting mq_text; DECLARE v_declares mq_text; DECLARE v_parse mq_text;
DECLARE v_matches mq_text; DECLARE v_content mq_text; DECLARE v_json mq_text;
DECLARE v_table varchar(63) CHARACTER SET UTF8;
DECLARE v_active mq_status;
DECLARE v_check varchar(100) CHARACTER SET UTF8;
BEGIN
    EXECUTE PROCEDURE imq_polled_shape(p_name)
        RETURNING_VALUES kind, counted, quoted, status, order_column, v_wanted, v_sorting, place, to_write, v_declares, v_parse,
            v_matches, ident, v_content, v_json;
    SELECT table_name, active_value FROM mq_polled WHERE name = :p_name INTO v_table, v_active;
    EXECUTE PROCEDURE imq_require_claim_index(v_table, v_wanted) RETURNING_VALUES claim_index;
    v_check = IIF(status IS NULL, '', ' AND r.{"status"} IS NOT DISTINCT FROM :s_status');
    -- Claims the row at p_place if it has not changed. mine is 1 when the row is claimed, 0 when it is locked or changed, 2
    -- when the table refuses it. There is one WHEN, because the engine runs all that match, one after another. The numbers
    -- are deadlock, lock_conflict, update_conflict, random, no_cur_rec, and cancelled.
    take = q'[EXECUTE BLOCK (p_place char(8) CHARACTER SET OCTETS = ?, p_ident mq_ident = ?, p_to mq_status = ?,
    p_write smallint = ?, p_status mq_status = ?)
RETURNS (mine smallint, json mq_text, content mq_text, error mq_error)
AS
DECLARE s_status {"status_type"}; DECLARE s_to {"status_type"};
DECLARE v_set smallint;
BEGIN
    s_status = p_status;
    s_to = p_to;
    v_set = RDB$SET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER', 'begun');
    mine = 0;
    BEGIN
        FOR SELECT {"json"} AS json, {"content"} AS content
            FROM {"table"} AS r
            WHERE r.RDB$DB_KEY = :p_place AND {"ident"} = :p_ident{"check"}
            {"into_cursor"}
        DO
        BEGIN
            {"update"}
            mine = 1;
        END
        WHEN ANY DO
            IF (GDSCODE IN (335544336, 335544345, 335544451, 335544382, 335544348)) THEN
                mine = 0;
            ELSE IF (GDSCODE = 335544794) THEN
                EXCEPTION;
            ELSE
            BEGIN
                mine = 2;
                error = {"error"};
            END
    END
    v_set = RDB$SET_CONTEXT('USER_TRANSACTION', 'MQ_ANSWER', 'given');
    SUSPEND;
END]';
    take = REPLACE(take, '{"into_cursor"}', IIF(kind = 'K', 'INTO json, content AS CURSOR c', imq_row_lock()));
    take = REPLACE(take, '{"update"}', IIF(v_active IS NULL, '',
        'IF (p_write = 1) THEN UPDATE {"table"} SET {"status"} = :s_to WHERE CURRENT OF c;'));
    take = REPLACE(REPLACE(take, '{"check"}', v_check), '{"error"}', imq_error_expression());
    take = REPLACE(REPLACE(REPLACE(take, '{"ident"}', ident), '{"json"}', v_json), '{"content"}', v_content);
    take = imq_fill_names(take, quoted, status, order_column, NULL);
    -- Finds the rows of an identity.
    find = q'[EXECUTE BLOCK (p_ident mq_ident = ?, p_status mq_status = ?)
RETURNS (place char(8) CHARACTER SET OCTETS)
AS
DECLARE s_status {"status_type"};
DECLARE v_ident mq_ident;
DECLARE v_at integer; DECLARE v_end integer; DECLARE v_length integer;
{"declares"}
BEGIN
    s_status = p_status;
    v_ident = p_ident;
    {"parse"}
    FOR SELECT r.RDB$DB_KEY FROM {"table"} AS r WHERE {"matches"}{"check"} INTO place DO
        SUSPEND;
END]';
    find = REPLACE(REPLACE(find, '{"declares"}', v_declares), '{"parse"}', v_parse);
    find = REPLACE(REPLACE(find, '{"matches"}', v_matches), '{"check"}', v_check);
    find = imq_fill_names(find, quoted, status, order_column, NULL);
    -- Reads rows by the index.
    walk = q'[EXECUTE BLOCK (p_from mq_ident = ?, p_status mq_status = ?)
RETURNS (place char(8) CHARACTER SET OCTETS, ident mq_ident, order_text mq_ident)
AS
DECLARE s_status {"status_type"};
DECLARE o_from {"order_type"};
BEGIN
    s_status = p_status;
    {"from"}
    FOR SELECT r.RDB$DB_KEY, {"ident"}, {"order_text"} FROM {"table"} AS r {"condition"} {"plan"} {"sorting"}
        INTO place, ident, order_text
    DO
        SUSPEND;
END]';
    walk = REPLACE(walk, '{"from"}', IIF(order_column IS NULL, '', 'o_from = CAST(p_from AS {"order_type"});'));
    walk = REPLACE(walk, '{"order_text"}', IIF(kind = 'D' AND order_column IS NOT NULL, place, 'NULL'));
    walk = REPLACE(walk, '{"plan"}', IIF(claim_index IS NULL, '', 'PLAN (r ORDER {"index"})'));
    walk = REPLACE(REPLACE(walk, '{"sorting"}', COALESCE('ORDER BY ' || v_sorting, '')), '{"ident"}', ident);
    walk = imq_fill_names(walk, quoted, status, order_column, claim_index);
    -- Counts the rows at a status, up to p_most.
    count_rows = imq_fill_names(q'[EXECUTE BLOCK (p_most bigint = ?, p_status mq_status = ?)
RETURNS (n bigint)
AS
DECLARE s_status {"status_type"};
BEGIN
    s_status = p_status;
    SELECT COUNT(*) FROM (SELECT 1 AS one FROM {"table"} AS r WHERE r.{"status"} = :s_status ROWS :p_most) AS d INTO n;
    SUSPEND;
END]', quoted, status, order_column, NULL);
END
