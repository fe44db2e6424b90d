-- polled_shape: return the SQL fragments that read and write a polling table.
-- Arguments:   p_name (of the polling table)
-- Returns:     kind (S: has a status; D: no status, done rows are deleted; K: no status, rows are kept), counted (1: equal
--              rows), the table, the status and the first order column (quoted), wanted (the columns of the index for
--              claims), and expressions over a row r: see the comments on the columns
--
-- A row is found by its identity: the key, or all columns except the status, as text, each value after its length (see
-- mq_ident). Statements read the values back into variables k1, k2 and so on, of the columns' own types: the text of a
-- statement never contains a user's value.
CREATE OR ALTER PROCEDURE imq_polled_shape (
    p_name mq_name
)
RETURNS (
    kind varchar(1) CHARACTER SET ASCII,
    counted smallint,
    quoted varchar(130) CHARACTER SET UTF8,
    status varchar(130) CHARACTER SET UTF8,
    order_column varchar(130) CHARACTER SET UTF8,
    wanted mq_text,
    -- ORDER BY
    sorting mq_text,
    -- the order column as text
    place mq_text,
    -- a column whose UPDATE right allows a row lock, quoted
    to_write varchar(130) CHARACTER SET UTF8,
    -- declarations of k1, k2 and so on, statements that fill them from v_ident, a condition that finds the row
    declares mq_text,
    parse mq_text,
    matches mq_text,
    -- expressions: the identity, the row and its key as JSON
    ident mq_text,
    content mq_text,
    json mq_text
)
AS
DECLARE v_table varchar(63) CHARACTER SET UTF8; DECLARE v_order varchar(63) CHARACTER SET UTF8;
DECLARE v_status varchar(63) CHARACTER SET UTF8; DECLARE v_owner varchar(63) CHARACTER SET UTF8;
DECLARE v_name varchar(63) CHARACTER SET UTF8;
DECLARE v_keys mq_text; DECLARE v_list mq_text; DECLARE v_types mq_text; DECLARE v_types_then mq_text;
DECLARE v_on_complete varchar(6) CHARACTER SET ASCII;
DECLARE v_type_now varchar(120) CHARACTER SET UTF8;
DECLARE v_n integer;
DECLARE v_quoted varchar(130) CHARACTER SET UTF8;
DECLARE v_text varchar(400) CHARACTER SET UTF8;
DECLARE v_type varchar(300) CHARACTER SET UTF8;
BEGIN
    SELECT table_name, table_owner, key_columns, ident_columns, ident_types, order_column, status_column, on_complete
    FROM mq_polled WHERE name = :p_name
    INTO v_table, v_owner, v_keys, v_list, v_types_then, v_order, v_status, v_on_complete;
    SELECT quoted FROM imq_find_table('table', '"' || REPLACE(:v_table, '"', '""') || '"') INTO quoted;
    -- The entries belong to the rows of the polling table. The owner of a new table of that name must not see them.
    IF (NOT EXISTS (SELECT * FROM rdb$relations WHERE rdb$relation_name = :v_table AND rdb$owner_name = :v_owner)) THEN
        EXECUTE PROCEDURE imq_require_polled(p_name);
    kind = IIF(v_status IS NOT NULL, 'S', IIF(v_on_complete = 'delete', 'D', 'K'));
    counted = IIF(v_keys IS NULL, 1, 0);
    status = '"' || REPLACE(v_status, '"', '""') || '"';
    declares = '';
    parse = 'v_at = 1; ';
    matches = '';
    ident = '';
    v_types = '';
    FOR SELECT n, quoted, as_text, type FROM imq_columns_as_text('key_columns', :v_table, :v_list)
        INTO v_n, v_quoted, v_text, v_type_now
    DO
    BEGIN
        v_types = v_types || COALESCE(v_type_now, '') || ';';
        to_write = COALESCE(to_write, v_quoted);
        v_type = 'TYPE OF COLUMN ' || quoted || '.' || v_quoted;
        declares = declares || 'DECLARE k' || v_n || ' ' || v_type || '; ';
        parse = parse || 'IF (SUBSTRING(v_ident FROM v_at FOR 1) = x''2D'') THEN BEGIN k' || v_n
            || ' = NULL; v_at = v_at + 1; END'
            || ' ELSE BEGIN v_end = POSITION(x''3A'', v_ident, v_at); v_length = SUBSTRING(v_ident FROM v_at FOR v_end - v_at); k'
            || v_n || ' = CAST(SUBSTRING(v_ident FROM v_end + 1 FOR v_length) AS ' || v_type
            || '); v_at = v_end + 1 + v_length; END ';
        -- TRIM: IIF pads its result to the longer text.
        matches = matches || IIF(v_n > 1, ' AND ', '') || 'r.' || v_quoted
            || TRIM(TRAILING FROM IIF(v_keys IS NULL, ' IS NOT DISTINCT FROM :k', ' = :k')) || v_n;
        ident = ident || IIF(v_n > 1, ' || ', '') || 'COALESCE(CAST(OCTET_LENGTH(' || v_text
            || ') AS varchar(6) CHARACTER SET OCTETS) || x''3A'' || ' || v_text || ', x''2D'')';
        order_column = COALESCE(order_column, v_quoted);
        sorting = COALESCE(sorting || ', ', '') || 'r.' || v_quoted;
        wanted = COALESCE(wanted || ',', '') || v_quoted;
    END
    -- Without a key, the identity is the texts of all columns, and they depend on the types.
    IF (v_keys IS NULL AND v_types <> v_types_then) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', LEFT(p_name, 100) || ': ' || quoted
            || ' has a column whose type has changed since it was adopted: call unadopt_table, then adopt_table again');
    ident = 'CAST(' || ident || ' AS mq_ident)';
    -- To a collation different texts may be equal: compare the identity too.
    IF (v_keys IS NULL) THEN
        matches = matches || ' AND ' || ident || ' = :v_ident';
    content = imq_row_json(v_table, NULL, 'R');
    json = imq_row_json(v_table, v_list, 'R');

    IF (v_order IS NOT NULL) THEN
    BEGIN
        order_column = '"' || REPLACE(v_order, '"', '""') || '"';
        sorting = 'r.' || order_column;
        wanted = order_column;
    END
    ELSE IF (v_keys IS NULL) THEN
    BEGIN
        order_column = NULL;
        sorting = NULL;
        wanted = NULL;
    END
    IF (order_column IS NOT NULL) THEN
        SELECT as_text FROM imq_columns_as_text('order_column', :v_table, :order_column) INTO place;
    IF (kind = 'S') THEN
    BEGIN
        EXECUTE PROCEDURE imq_find_one_column('status_column', v_table, status) RETURNING_VALUES v_name;
        sorting = 'r.' || status || COALESCE(', ' || sorting, '');
        wanted = status || COALESCE(',' || wanted, '');
    END
    to_write = COALESCE(status, IIF(kind = 'D', to_write, NULL));
    WHEN EXCEPTION mq_50002 DO
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', LEFT(p_name, 100) || ': ' || quoted
            || ' no longer has a column that it was adopted with: call unadopt_table, then adopt_table again');
END
