-- require_order: refuse an order column that claims cannot continue from.
-- Arguments:   p_table (as find_table returns it), p_column (quoted), p_exact (1: claims store a low-water mark in it)
CREATE OR ALTER PROCEDURE imq_require_order (
    p_table varchar(63) CHARACTER SET UTF8, p_column varchar(130) CHARACTER SET UTF8, p_exact smallint
)
AS
DECLARE v_name varchar(63) CHARACTER SET UTF8;
DECLARE v_kind smallint; DECLARE v_nullable smallint;
DECLARE v_as_text varchar(400) CHARACTER SET UTF8;
BEGIN
    SELECT name, kind, nullable, as_text FROM imq_columns_as_text('order_column', :p_table, :p_column)
    INTO v_name, v_kind, v_nullable, v_as_text;
    -- The text of a floating point number does not read back as the same number: rows would be missed at the low-water mark.
    IF (p_exact = 1 AND (v_nullable = 1 OR v_kind IN (10, 23, 27, 261))) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table',
            'order_column: ' || v_name || ' must be NOT NULL, and an exact number, a text or a time');
    IF (v_as_text IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', 'order_column: ' || v_name
            || ' must be a number, a text or a time');
END
