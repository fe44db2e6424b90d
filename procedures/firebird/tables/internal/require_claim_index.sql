-- require_claim_index: return the index for claims of a polling table; refuse a table that has none.
-- Arguments:   p_table (as in the catalog), p_columns (quoted, separated by commas; NULL: no index is needed)
-- Returns:     claim_index: its name, quoted, or NULL
CREATE OR ALTER PROCEDURE imq_require_claim_index (p_table varchar(63) CHARACTER SET UTF8, p_columns mq_text)
RETURNS (claim_index varchar(130) CHARACTER SET UTF8)
AS
BEGIN
    claim_index = imq_find_index(p_table, p_columns);
    IF (p_columns IS NOT NULL AND claim_index IS NULL) THEN
        EXECUTE PROCEDURE imq_raise_error('unsuitable_table', 'without this index claims would scan the table: CREATE INDEX "'
            || REPLACE(LEFT(p_table, 20), '"', '') || '_CLAIM" ON "' || REPLACE(p_table, '"', '""') || '" ('
            || REPLACE(p_columns, ',', ', ') || ')');
END
