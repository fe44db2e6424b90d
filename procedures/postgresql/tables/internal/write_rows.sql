-- write_rows: set the status of rows, or delete them; row by row when one statement for all fails.
-- Arguments: p_shape (from polled_shape), p_delete, p_value (the new status, without p_delete); parallel arrays:
--     p_parts and p_places (tableoid and ctid of rows that the caller has locked)
-- Returns: an array: NULL for a row that was written, otherwise its error
CREATE OR REPLACE FUNCTION mq_internal.write_rows(
    p_shape jsonb, p_delete boolean, p_value text, p_parts oid[], p_places tid[]
) RETURNS text[]
LANGUAGE plpgsql
-- The callers switch these off; the table's triggers must be planned with the defaults.
SET enable_seqscan = on
SET enable_hashjoin = on
SET enable_mergejoin = on
AS $$
DECLARE
    v_statement text := format(CASE WHEN p_delete THEN 'DELETE FROM %s AS t'
        ELSE 'UPDATE %s AS t SET %s = $1::%s' END
        || ' WHERE t.ctid = ANY ($2) AND (t.tableoid, t.ctid) IN (SELECT * FROM unnest($3, $2))',
        p_shape->>'quoted', p_shape->>'status', p_shape->>'status_type');
    v_path text := current_setting('search_path');
    v_errors text[] := array_fill(NULL::text, ARRAY[coalesce(cardinality(p_places), 0)]);
    v_count bigint;
BEGIN
    IF cardinality(p_places) IS NULL THEN
        RETURN v_errors;
    END IF;
    -- The table's triggers must find the objects of its own schema. pg_catalog comes first: no user's operator can be
    -- called.
    PERFORM set_config('search_path', p_shape->>'path', true);
    BEGIN
        EXECUTE v_statement USING p_value, p_places, p_parts;
        GET DIAGNOSTICS v_count = ROW_COUNT;
        IF v_count = cardinality(p_places) THEN
            PERFORM set_config('search_path', v_path, true);
            RETURN v_errors;
        END IF;
        RAISE EXCEPTION 'the table leaves rows as they are';
    EXCEPTION WHEN OTHERS THEN
        IF left(SQLSTATE, 2) IN ('40', '53', '54', '55', '57', '58', 'XX') OR SQLSTATE = '42501' THEN
            RAISE;
        END IF;
    END;
    FOR i IN 1 .. cardinality(p_places) LOOP
        BEGIN
            EXECUTE v_statement USING p_value, ARRAY[p_places[i]], ARRAY[p_parts[i]];
            GET DIAGNOSTICS v_count = ROW_COUNT;
            IF v_count = 0 THEN
                v_errors[i] := 'a trigger of the table left the row as it was';
            END IF;
        EXCEPTION WHEN OTHERS THEN
            IF left(SQLSTATE, 2) IN ('40', '53', '54', '55', '57', '58', 'XX') OR SQLSTATE = '42501' THEN
                RAISE;
            END IF;
            v_errors[i] := SQLERRM;
        END;
    END LOOP;
    PERFORM set_config('search_path', v_path, true);
    RETURN v_errors;
END
$$;
