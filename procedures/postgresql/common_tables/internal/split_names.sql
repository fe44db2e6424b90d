-- split_names: split an argument into names, as the catalog stores them.
-- Arguments: p_separator ('.' or ','), p_most (the most names allowed)
-- Returns: the names: a plain name in small letters, a name in double quotes unchanged
CREATE OR REPLACE FUNCTION mq_internal.split_names(
    p_argument text, p_names text, p_separator text, p_most bigint
) RETURNS text[]
LANGUAGE plpgsql SET search_path = mq, pg_temp AS $$
DECLARE
    v_names text[] := '{}';
    v_rest text := p_names;
    v_parts text[];
    v_name text;
BEGIN
    IF char_length(p_names) BETWEEN 1 AND 500 * p_most THEN
        LOOP
            -- In $r$ a backslash is literal, independent of standard_conforming_strings. Outside quotes: a letter, an
            -- underscore or any non-ASCII character; after it also digits and $.
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
    PERFORM mq_internal.raise_error('invalid_argument', p_argument || CASE p_separator
        WHEN '.' THEN ': must be table or schema.table'
        ELSE format(': must be 1 to %s names of columns, separated by commas', p_most)
    END || '; at most 200 characters per name; put a name that is not a plain identifier in double quotes');
END
$$;
