-- require_name: refuse a type, key or name that is not 1 to 200 characters long, or that ends with a blank.
--
-- Firebird ignores trailing blanks when it compares texts: two names that differ only in these would be the same.
CREATE OR ALTER PROCEDURE imq_require_name (
    p_argument varchar(30) CHARACTER SET ASCII, p_value mq_argument, p_optional smallint
)
AS
BEGIN
    IF (p_value IS NULL) THEN
    BEGIN
        IF (p_optional = 0) THEN
            EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_argument || ': must be 1 to 200 characters, not NULL');
    END
    ELSE IF (CHAR_LENGTH(p_value) NOT BETWEEN 1 AND 200) THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument',
            p_argument || ': must be 1 to 200 characters, not ' || CHAR_LENGTH(p_value));
    ELSE IF (RIGHT(p_value, 1) = '') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', p_argument || ': must not end with a blank');
END
