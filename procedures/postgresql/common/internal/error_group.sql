-- error_group: the common text of errors that differ only in numbers: the first line, with # for each run of digits,
--     without trailing blanks.
-- Returns: up to 200 characters, from the first 500 of the error; '': no error
CREATE OR REPLACE FUNCTION mq_internal.error_group(p_error text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT rtrim(left(regexp_replace(split_part(split_part(left(coalesce(p_error, ''), 500), chr(10), 1), chr(13), 1), '[0-9#]+',
        '#', 'g'), 200), ' ');
$$;
