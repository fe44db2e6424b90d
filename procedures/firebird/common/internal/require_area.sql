-- require_area: refuse a setting, or a claim that follows it, while the area of the same name is not installed.
CREATE OR ALTER PROCEDURE imq_require_area (p_area mq_name)
AS
BEGIN
    -- An area gets its hash when all its files are installed.
    IF (NOT EXISTS (SELECT * FROM mq_installed WHERE name = :p_area AND kind = 'area' AND sha256 <> '')) THEN
        EXECUTE PROCEDURE imq_raise_error('area_missing', p_area || ': the area ' || p_area
            || ' is not installed here: `runner apply --areas ' || p_area || '` adds it');
END
