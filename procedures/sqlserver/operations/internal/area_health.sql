-- area_health: no rows. The area schedules has its own version, with a check of its schedules.
CREATE OR ALTER FUNCTION mq_internal.area_health ()
RETURNS @checks TABLE (
    name varchar(60) NOT NULL PRIMARY KEY, verdict varchar(4) NOT NULL, value float, unit varchar(20) NOT NULL, detail nvarchar(max) NOT NULL
)
AS
BEGIN
    RETURN;
END;
