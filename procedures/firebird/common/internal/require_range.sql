-- require_range: refuse a number outside its limits; NULL passes and means the default.
CREATE OR ALTER PROCEDURE imq_require_range (
    p_argument varchar(30) CHARACTER SET ASCII, p_value bigint, p_from bigint, p_to bigint
)
AS
DECLARE v_from varchar(20) CHARACTER SET ASCII;
DECLARE v_to varchar(30) CHARACTER SET ASCII;
DECLARE v_place integer;
BEGIN
    IF (p_value NOT BETWEEN p_from AND p_to) THEN
    BEGIN
        v_from = p_from;
        v_to = p_to;
        -- Writes 315360000 as 315,360,000.
        IF (CHAR_LENGTH(v_from) > 4) THEN
            v_from = LEFT(v_from, CHAR_LENGTH(v_from) - 3) || ',' || RIGHT(v_from, 3);
        v_place = CHAR_LENGTH(v_to) - 3;
        WHILE (v_place > 0) DO
        BEGIN
            v_to = LEFT(v_to, v_place) || ',' || SUBSTRING(v_to FROM v_place + 1);
            v_place = v_place - 3;
        END
        EXECUTE PROCEDURE imq_raise_error('invalid_argument',
            p_argument || ': must be ' || v_from || ' to ' || v_to || ', not ' || p_value);
    END
END
