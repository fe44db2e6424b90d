-- is_watched: return whether a table is watched.
-- Arguments:   p_label (the table, as messages name it)
-- Returns:     true or false

CREATE OR REPLACE FUNCTION mq_internal.is_watched(
    p_label text
) RETURNS boolean
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
BEGIN
    RETURN EXISTS (SELECT FROM mq.watched AS w WHERE w.label = p_label);
END
$$;
