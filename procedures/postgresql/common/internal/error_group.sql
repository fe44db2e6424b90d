-- error_group: the common text of errors that differ only in numbers: the first line, with # for each run of digits,
--              without trailing blanks.
-- Arguments:   p_error
-- Returns:     up to 200 characters, from the first 500 of the error; '': no error
-- Errors:      none
-- Transaction: reads nothing
-- Example:     SELECT mq.error_group('order 4711: timeout after 30 s');  -- order #: timeout after # s

CREATE OR REPLACE FUNCTION mq.error_group(
    p_error text
) RETURNS text
LANGUAGE sql
IMMUTABLE
AS $$
    SELECT rtrim(left(regexp_replace(left(split_part(translate(coalesce(p_error, ''), chr(13), chr(10)), chr(10), 1), 500), '[0-9#]+',
        '#', 'g'), 200), ' ');
$$;
