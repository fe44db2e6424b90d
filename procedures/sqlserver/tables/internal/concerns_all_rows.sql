-- concerns_all_rows: whether an error of a statement on a user's table has a cause that concerns all its rows.
-- Arguments: @number, @severity (ERROR_NUMBER() and ERROR_SEVERITY()), @state (XACT_STATE())
-- Returns: 1: raise the error; 0: the table refuses a row
CREATE OR ALTER FUNCTION mq_internal.concerns_all_rows (@number int, @severity int, @state int)
RETURNS bit
AS
BEGIN
    RETURN CASE
        -- A transaction that cannot continue; no memory, no space.
        WHEN @state <> 1 OR @severity > 16 THEN 1
        -- Another transaction is in the way: locks, row versions, memory.
        WHEN @number IN (601, 701, 802, 1204, 1205, 1222, 2801, 3958, 3960, 3961, 3966, 8628, 8645, 8651, 13535, 41302, 41305, 41325)
            THEN 1
        -- A missing right; a database, object, column or parameter that a trigger, a check or a computed column misses; triggers
        -- that call each other without end; a setting of the session that an index of the table does not allow; a table that
        -- only takes new rows.
        WHEN @number IN (201, 207, 208, 213, 217, 229, 230, 297, 300, 911, 916, 1934, 2812, 3906, 4121, 8144, 8145, 15404, 15517, 37359) THEN 1
        ELSE 0
    END;
END;
