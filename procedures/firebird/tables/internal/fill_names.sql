-- fill_names: fill the names of a polling table into the template of a statement.
-- Arguments:   p_template, p_table, p_status, p_order, p_index (quoted, see polled_shape; NULL: the template does not use
--              it)
-- Returns:     the statement
--
-- Placeholders look like {"table"}. A quoted name cannot contain one, because its double quotes are doubled.
CREATE OR ALTER FUNCTION imq_fill_names (
    p_template mq_text, p_table varchar(130) CHARACTER SET UTF8, p_status varchar(130) CHARACTER SET UTF8,
    p_order varchar(130) CHARACTER SET UTF8, p_index varchar(130) CHARACTER SET UTF8
)
RETURNS mq_text
AS
BEGIN
    p_template = REPLACE(p_template, '{"status_type"}', IIF(p_status IS NULL, 'smallint', 'TYPE OF COLUMN {"table"}.{"status"}'));
    p_template = REPLACE(p_template, '{"order_type"}', IIF(p_order IS NULL, 'smallint', 'TYPE OF COLUMN {"table"}.{"order"}'));
    p_template = REPLACE(p_template, '{"status"}', COALESCE(p_status, ''));
    p_template = REPLACE(p_template, '{"order"}', COALESCE(p_order, ''));
    p_template = REPLACE(p_template, '{"index"}', COALESCE(p_index, ''));
    RETURN REPLACE(p_template, '{"table"}', p_table);
END
