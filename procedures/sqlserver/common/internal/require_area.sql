-- require_area: refuse a setting, or a claim that follows it, while the area of the same name is not installed.
CREATE OR ALTER PROCEDURE mq_internal.require_area
    @area nvarchar(200)
AS
BEGIN
    DECLARE @detail nvarchar(2000) = REPLACE(N'{}: the area {} is not installed here: `runner apply --areas {}` adds it', N'{}', @area);
    -- An area gets its hash when all its files are installed.
    IF NOT EXISTS (SELECT * FROM mq.installed WHERE name = @area AND kind = 'area' AND sha256 <> '')
        EXEC mq_internal.raise_error 'area_missing', @detail;
END;
