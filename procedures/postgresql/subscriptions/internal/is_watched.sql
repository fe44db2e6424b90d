-- is_watched: return whether a table is watched.
CREATE OR REPLACE FUNCTION mq_internal.is_watched(p_label text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = mq, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM mq.watched AS w WHERE w.label = p_label);
END
$$;
