-- polled_shape: the pieces of SQL that an adopted table is read and written by.
-- Arguments:   p_name (of an adopted table)
-- Returns:     kind (S: has a status, D: none, rows are deleted, K: none, rows are kept), counted (1: equal rows), the names in
--              quotes of the table, the status, the first order column and the index that claims walk, and expressions of a
--              row r:
--              see below
-- Errors:      50002 invalid_argument, 50005 not_found, 50006 unsuitable_table: the table is not as it was adopted
-- Transaction: reads the catalog only
-- Example:     EXECUTE PROCEDURE mq_polled_shape('orders') RETURNING_VALUES v_kind, v_counted, ...
--
-- A row is found again by its identity: the key, or all columns but the status, as text, each value with its length before it
-- (see mq_ident). Statements read the values back into variables k1, k2 and so on, of the columns' own types, so no value of a
-- user's is ever a part of the text of a statement.

SET TERM ^ ;

CREATE OR ALTER PROCEDURE mq_polled_shape (
    p_name mq_name
)
RETURNS (
    kind varchar(1) CHARACTER SET ASCII,
    counted smallint,
    quoted varchar(130) CHARACTER SET UTF8,
    status varchar(130) CHARACTER SET UTF8,
    order_column varchar(130) CHARACTER SET UTF8,
    claim_index varchar(130) CHARACTER SET UTF8,
    -- ORDER BY
    sorting mq_text,
    -- the order column as text
    place mq_text,
    -- declarations of k1, k2 and so on, statements that fill them from v_ident, a condition that finds the row then
    declares mq_text,
    parse mq_text,
    matches mq_text,
    -- expressions: the identity, the row and its key as JSON
    ident mq_text,
    content mq_text,
    json mq_text
)
AS
DECLARE v_table varchar(63) CHARACTER SET UTF8;
DECLARE v_keys mq_text;
DECLARE v_order varchar(63) CHARACTER SET UTF8;
DECLARE v_status varchar(63) CHARACTER SET UTF8;
DECLARE v_on_complete varchar(6) CHARACTER SET ASCII;
DECLARE v_list mq_text;
DECLARE v_wanted mq_text;
DECLARE v_n integer;
DECLARE v_name varchar(63) CHARACTER SET UTF8;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8;
DECLARE v_text varchar(400) CHARACTER SET UTF8;
DECLARE v_type varchar(300) CHARACTER SET UTF8;
BEGIN
    SELECT table_name, key_columns, order_column, status_column, on_complete FROM mq_polled WHERE name = :p_name
    INTO v_table, v_keys, v_order, v_status, v_on_complete;
    SELECT quoted FROM mq_find_table('table', '"' || REPLACE(:v_table, '"', '""') || '"') INTO quoted;
    kind = IIF(v_status IS NOT NULL, 'S', IIF(v_on_complete = 'delete', 'D', 'K'));
    counted = IIF(v_keys IS NULL, 1, 0);
    status = '"' || REPLACE(v_status, '"', '""') || '"';
    v_list = COALESCE(v_keys, mq_ident_columns(v_table, v_status));
    declares = '';
    parse = 'v_at = 1; ';
    matches = '';
    ident = '';
    FOR SELECT n, quoted, as_text FROM mq_columns_as_text(IIF(:v_keys IS NULL, 'table', 'key_columns'), :v_table, :v_list)
        INTO v_n, v_quoted, v_text
    DO
    BEGIN
        v_type = 'TYPE OF COLUMN ' || quoted || '.' || v_quoted;
        declares = declares || 'DECLARE k' || v_n || ' ' || v_type || '; ';
        parse = parse || 'IF (SUBSTRING(v_ident FROM v_at FOR 1) = x''2D'') THEN BEGIN k' || v_n
            || ' = NULL; v_at = v_at + 1; END'
            || ' ELSE BEGIN v_end = POSITION(x''3A'', v_ident, v_at); v_length = SUBSTRING(v_ident FROM v_at FOR v_end - v_at); k'
            || v_n || ' = CAST(SUBSTRING(v_ident FROM v_end + 1 FOR v_length) AS ' || v_type
            || '); v_at = v_end + 1 + v_length; END ';
        -- What IIF gives is as long as the longer text: TRIM.
        matches = matches || IIF(v_n > 1, ' AND ', '') || 'r.' || v_quoted
            || TRIM(TRAILING FROM IIF(v_keys IS NULL, ' IS NOT DISTINCT FROM :k', ' = :k')) || v_n;
        ident = ident || IIF(v_n > 1, ' || ', '') || 'COALESCE(CAST(OCTET_LENGTH(' || v_text
            || ') AS varchar(6) CHARACTER SET OCTETS) || x''3A'' || ' || v_text || ', x''2D'')';
        order_column = COALESCE(order_column, v_quoted);
        sorting = COALESCE(sorting || ', ', '') || 'r.' || v_quoted;
        v_wanted = COALESCE(v_wanted || ',', '') || v_quoted;
    END
    ident = 'CAST(' || ident || ' AS mq_ident)';
    -- Texts that are equal to each other need not be the same.
    IF (v_keys IS NULL) THEN
        matches = matches || ' AND ' || ident || ' = :v_ident';
    content = mq_row_json(v_table, NULL, 'R');
    json = mq_row_json(v_table, v_list, 'R');

    IF (v_order IS NOT NULL) THEN
    BEGIN
        order_column = '"' || REPLACE(v_order, '"', '""') || '"';
        sorting = 'r.' || order_column;
        v_wanted = order_column;
    END
    ELSE IF (v_keys IS NULL) THEN
    BEGIN
        order_column = NULL;
        sorting = NULL;
        v_wanted = NULL;
    END
    IF (order_column IS NOT NULL) THEN
        SELECT as_text FROM mq_columns_as_text('order_column', :v_table, :order_column) INTO place;
    IF (kind = 'S') THEN
    BEGIN
        EXECUTE PROCEDURE mq_find_one_column('status_column', v_table, status) RETURNING_VALUES v_name;
        sorting = 'r.' || status || COALESCE(', ' || sorting, '');
        v_wanted = status || COALESCE(',' || v_wanted, '');
    END
    claim_index = mq_claim_index(v_table, v_wanted);
    WHEN EXCEPTION mq_50002 DO
        EXECUTE PROCEDURE mq_raise_error('unsuitable_table', p_name || ': its table has lost a column that it was adopted with');
END^

SET TERM ; ^
