-- require_headers: refuse headers that are not a JSON object with unique names, from its { to its }.
CREATE OR ALTER PROCEDURE imq_require_headers (p_headers mq_text)
AS
DECLARE v_count integer;
BEGIN
    IF (LEFT(p_headers, 1) <> '{' OR RIGHT(p_headers, 1) <> '}') THEN
        EXECUTE PROCEDURE imq_raise_error('invalid_argument', 'headers: must be a JSON object with unique names');
    SELECT COUNT(*) FROM imq_read_object(:p_headers, 'headers', 1) INTO v_count;
END
