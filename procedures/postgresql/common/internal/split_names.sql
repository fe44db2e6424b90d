-- split_names: the names in an argument, as the catalog would have them: a plain one in small letters, one in double
--              quotes as it stands.
-- Arguments:   p_argument (its name in the contract), p_names, p_separator ('.' or ','), p_most (how many there may be)
-- Returns:     the names
-- Errors:      50002 invalid_argument
-- Transaction: reads nothing
-- Example:     SELECT mq.split_names('key_columns', 'region, "Order no"', ',', 100);

CREATE OR REPLACE FUNCTION mq.split_names(
    p_argument text,
    p_names text,
    p_separator text,
    p_most bigint
) RETURNS text[]
LANGUAGE plpgsql
SET search_path = mq, pg_temp
AS $$
DECLARE
    v_names text[] := '{}';
    v_rest text := p_names;
    v_parts text[];
    v_name text;
BEGIN
    IF char_length(p_names) BETWEEN 1 AND 500 * p_most THEN
        LOOP
            -- In $r$, where a backslash is one whatever standard_conforming_strings says. Outside of quotes: a letter, an underscore or anything beyond ASCII; behind it digits and $ too.
            v_parts := regexp_match(v_rest,
                $r$^\s*("(?:[^"]|"")+"|[^\u0001-\u0040\u005b-\u005e\u0060\u007b-\u007f]$r$
                || $r$[^\u0001-\u0023\u0025-\u002f\u003a-\u0040\u005b-\u005e\u0060\u007b-\u007f]*)\s*(?:([$r$
                || p_separator || '])(.+))?$');
            EXIT WHEN v_parts IS NULL;
            v_name := (parse_ident(v_parts[1]))[1];
            EXIT WHEN char_length(v_name) > 200;
            v_names := v_names || v_name;
            IF v_parts[2] IS NULL THEN
                RETURN v_names;
            END IF;
            EXIT WHEN cardinality(v_names) = p_most;
            v_rest := v_parts[3];
        END LOOP;
    END IF;
    PERFORM mq.raise_error('invalid_argument', p_argument || CASE p_separator
        WHEN '.' THEN ': must be the name of a table, with its schema and a dot before it or without'
        ELSE format(': must be 1 to %s names of columns, with commas between them', p_most)
    END || '; a name has up to 200 characters and stands in double quotes unless it is a plain one');
END
$$;
