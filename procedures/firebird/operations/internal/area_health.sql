-- area_health: the checks of queue_health that belong to an area: none. The area schedules replaces this.
CREATE OR ALTER PROCEDURE imq_area_health
RETURNS (
    name varchar(60) CHARACTER SET UTF8, verdict varchar(4) CHARACTER SET UTF8, measured double precision,
    unit varchar(20) CHARACTER SET UTF8, detail mq_text
)
AS
BEGIN
    IF (1 = 0) THEN
        SUSPEND; -- or the procedure could not be selected from
END
