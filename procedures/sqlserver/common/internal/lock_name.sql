-- lock_name: the name of the application lock for a pair of names.
-- Arguments: @kind (what is locked: group, dedup ...), @first, @second
-- Returns: the name, for sp_getapplock; two pairs may get the same name, and then wait for each other
CREATE OR ALTER FUNCTION mq_internal.lock_name (@kind varchar(20), @first nvarchar(400), @second nvarchar(400))
RETURNS nvarchar(255)
AS
BEGIN
    -- A hash, because the names may be longer than a lock's name.
    RETURN CONCAT(N'mq.', @kind, N':', CAST(SUBSTRING(HASHBYTES('SHA2_256', CONCAT(@first, NCHAR(10), @second)), 1, 8) AS bigint));
END;
