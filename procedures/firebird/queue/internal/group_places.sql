-- group_places: how many messages of a group its free places allow a claim to take.
-- Arguments:   p_type, p_group_key, p_places (of the group; 0: no limit; NULL: see group_limits)
CREATE OR ALTER FUNCTION imq_group_places (p_type mq_name, p_group_key mq_name, p_places integer)
RETURNS integer
AS
DECLARE c_no_limit integer = 1000000;
DECLARE v_locks integer;
BEGIN
    IF (p_places IS NULL) THEN
        SELECT places FROM imq_group_limits(:p_type, :p_group_key) INTO p_places;
    IF (NOT EXISTS (SELECT * FROM mq_group_lock WHERE type = :p_type AND group_key = :p_group_key)) THEN
        RETURN IIF(p_places = 0, c_no_limit, p_places);
    IF (p_places = 1) THEN
        RETURN 0;
    -- DISTINCT: before Firebird 4.0 a key that is deleted and inserted again at the same time is read twice.
    SELECT COUNT(DISTINCT id) FROM mq_group_lock WHERE type = :p_type AND group_key = :p_group_key INTO v_locks;
    IF (p_places > 0 AND v_locks >= p_places) THEN
        RETURN 0;
    IF (EXISTS (
        SELECT *
        FROM mq_group_lock AS l
        WHERE l.type = :p_type AND l.group_key = :p_group_key AND EXISTS (SELECT * FROM mq_delayed AS d WHERE d.id = l.id)
    )) THEN
        RETURN 0;
    RETURN IIF(p_places = 0, c_no_limit, p_places - v_locks);
END
