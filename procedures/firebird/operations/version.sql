-- version: return the release that is installed, and its areas.
-- Arguments:   none
-- Returns:     version (such as 0.1.0; NULL before apply has ended), areas (their names in alphabetical order, separated by commas)
-- Errors:      none
-- Transaction: reads only
-- Example:     SELECT version FROM mq_version;

CREATE OR ALTER PROCEDURE mq_version
RETURNS (
    version mq_name,
    areas varchar(1000) CHARACTER SET UTF8
)
AS
DECLARE v_name mq_name;
BEGIN
    SELECT FIRST 1 name FROM mq_installed WHERE kind = 'release' ORDER BY applied_at DESC INTO version;
    -- LIST does not promise an order.
    FOR SELECT name FROM mq_installed WHERE kind = 'area' ORDER BY name INTO v_name DO
        areas = COALESCE(areas || ',', '') || v_name;
    SUSPEND;
END
