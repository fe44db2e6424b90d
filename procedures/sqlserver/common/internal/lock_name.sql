-- lock_name: the name of the application lock that stands for two names.
-- Arguments:   @kind (what is locked: group, dedup ...), @first, @second
-- Returns:     the name, for sp_getapplock; two pairs of names may share one, and then wait for each other
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq.lock_name('group', N'invoice', N'customer-7');

CREATE OR ALTER FUNCTION mq.lock_name (@kind varchar(20), @first nvarchar(400), @second nvarchar(400))
RETURNS nvarchar(255)
AS
BEGIN
    -- The names may be longer than that of a lock.
    RETURN CONCAT(N'mq.', @kind, N':', CAST(SUBSTRING(HASHBYTES('SHA2_256', CONCAT(@first, NCHAR(10), @second)), 1, 8) AS bigint));
END;
GO
