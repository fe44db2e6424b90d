-- drop_watched: delete a watched table and its subscriptions.
-- Arguments:   p_label (the table, as messages name it)
-- Returns:     nothing
-- Errors:      none
-- Transaction: joins the caller's
-- Example:     SELECT mq.drop_watched('stock');

CREATE OR REPLACE FUNCTION mq.drop_watched(
    p_label text
) RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = mq, pg_temp
AS $$
BEGIN
    DELETE FROM mq.watched WHERE label = p_label;
END
$$;
